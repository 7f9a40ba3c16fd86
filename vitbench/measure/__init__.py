"""The only code that touches clocks and devices."""
