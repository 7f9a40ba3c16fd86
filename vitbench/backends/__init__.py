"""How the inner attention is executed: one file per way, one instance per member."""
