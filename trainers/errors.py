"""What goes wrong with data, said so that a person can mend it."""

from comm_plans.errors import presentable


class DataError(Exception):
    """Data that is missing, damaged or too small; one sentence with the file or key and the way to mend it."""

    def __str__(self) -> str:
        return presentable(super().__str__())


class GenerationError(DataError):
    """A prompt, a sampling option or a cache that can't be served; one sentence with the way to mend it."""


class OverlapError(DataError):
    """A graph of operations, a profile or a plan of overlapping that can't be used; one sentence, with a way out."""
