"""Which model, image, patch, window and backend fit a budget of time and memory (`vitbench plan`)."""
