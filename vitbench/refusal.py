"""The one error that a user is meant to read, and how a command ends on it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from io import TextIOWrapper


class Refusal(ValueError):
    """A request that cannot be met, in one line: the value, what was expected, the known names.

    Commands print it without a traceback and end with exit code 2.
    """


def exit_code(command: Callable[[], int]) -> int:
    """What the command returns; 2 after printing a refusal or a failed file in one line; 130 after Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal may lack the letters of a page
            stream.reconfigure(errors="replace")
    try:
        return command()
    except Refusal as refusal:
        print(f"vitbench: {refusal}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read the output has seen enough
        sys.stderr.close()
        return 0
    except OSError as error:  # a full disk, a folder taken away; what was recorded stays
        print(f"vitbench: {error.filename or 'a write failed'}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def positive(text: str) -> float:
    """The type of an option that is a number above 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return value
