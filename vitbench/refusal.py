"""The one error that a user is meant to read."""


class Refusal(ValueError):
    """A request that cannot be met, in one line: the value, what was expected, the known names.

    Commands print it without a traceback and end with exit code 2.
    """
