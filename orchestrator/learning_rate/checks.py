"""Checks of a policy's parameters; each failure is one sentence naming the key of the configuration."""

from orchestrator.errors import UserError


def require(holds: bool, sentence: str) -> None:
    """UserError with that sentence unless `holds`."""
    if not holds:
        raise UserError(sentence)


def require_positive(**values: float | None) -> None:
    """Each value, a parameter of the policy by its name, must be above 0 and finite; None passes."""
    for name, value in values.items():
        holds = value is None or 0 < value < float("inf")
        require(holds, f"lr.{name} is {value}, it must be positive: set lr.{name} to a number above 0.")


def require_budget(steps: int, stages: int | None) -> None:
    """There must be steps to take, and enough of them for the stages asked for."""
    require(steps > 0, f"steps is {steps}, there is nothing to train: set steps to 1 or more.")
    if stages is not None:
        require(stages > 0, f"lr.stages is {stages}: set it to 1 or more, or to null to have it chosen.")
        fits = f"lr.stages is {stages}, but steps is only {steps}: lower lr.stages or raise steps."
        require(stages <= steps, fits)


def require_share(**values: float) -> None:
    """Each value must be a share of the run: from 0 to below 1."""
    for name, value in values.items():
        require(0 <= value < 1, f"lr.{name} is {value}, a share of all steps: set it from 0 to below 1.")
