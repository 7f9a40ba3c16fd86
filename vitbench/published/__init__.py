"""Published tables of models, counted again: `vitbench audit --table`."""
