"""The constants of this machine, from the records of a run (`vitbench calibrate`)."""
