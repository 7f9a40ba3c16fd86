"""One model under every counter, each difference with its reason: `vitbench audit`."""
