"""The time model held against published measurements (`make validate`)."""
