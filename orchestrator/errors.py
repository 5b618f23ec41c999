"""The one error a person sees as a sentence. Whoever raises it says what is wrong, where, and how to mend it."""

from comm_plans.errors import presentable


class UserError(Exception):
    """Wrong input or an unmet need of the environment; commands print it on one line and exit with code 2."""

    def __str__(self) -> str:
        return presentable(super().__str__())
