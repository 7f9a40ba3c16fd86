"""What a worker and its supervisor agree on: how often a case is taken, and exit codes beside pytest's own."""

TAKES = 3  # of a case in a pass: a disturbed one is taken again at once, in the same process
RESTART = 77  # asks for a fresh process, the case in hand recorded
UNWRITABLE = 128  # plus errno: could not append a record
