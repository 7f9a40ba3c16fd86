"""The questions: sweeps, the pytest-benchmark harness that runs their cases, and the command that supervises it."""
