"""The one error a person sees as a sentence. Whoever raises it says what is wrong, where, and how to mend it."""


class UserError(Exception):
    """Wrong input or an unmet need of the environment; commands print it on one line and exit with code 2."""
