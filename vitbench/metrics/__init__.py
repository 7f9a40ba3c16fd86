"""Numbers derived from the row of a case: rates, shares of what the machine attains, energy for an image."""
