"""How a model grows with its images: exact laws, padding, where pairs reach half; `vitbench scale`."""
