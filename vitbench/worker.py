"""How a worker tells its supervisor why it ended: its exit codes, beside pytest's own."""

RESTART = 77  # asks for a fresh process, the case in hand recorded
UNWRITABLE = 128  # plus errno: could not append a record
