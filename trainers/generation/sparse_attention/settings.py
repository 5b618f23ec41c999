"""What a person may ask of a method, or one sentence that refuses it; without torch, so that launches can ask."""

from trainers.errors import GenerationError


def check_target(target: float) -> None:
    """Raise GenerationError for what is no share of attention mass."""
    if not 0 < target <= 1:
        raise GenerationError(
            f"The target mass is {target}; give a share of the attention mass in (0, 1], such as 0.9."
        )


def check_budget(budget: int, least: int) -> None:
    """Raise GenerationError for fewer tokens than the method reads at least."""
    if budget < least:
        raise GenerationError(f"The budget is {budget} tokens a key-value head; this method reads at least {least}.")
