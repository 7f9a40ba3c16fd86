"""python -m vitbench: the same as the command vitbench, from a checkout that is not installed."""

from __future__ import annotations

import sys

from vitbench.cli import main

if __name__ == "__main__":
    sys.exit(main())
