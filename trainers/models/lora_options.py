"""Options of low-rank adapters, as numbers and words: read by whoever checks a configuration, so no torch in here."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainers.errors import DataError

LAYERS = ("queries", "keys", "values", "output", "gate", "up", "down")


@dataclass(frozen=True)
class LoraOptions:
    """rank: of each change of weights. alpha: alpha / rank scales it. layers: which linear layers of a block change.

    The paper adapts queries and values (arXiv 2106.09685, section 7.1). Raises DataError for what cannot work.
    """

    rank: int = 8
    alpha: float = 16.0
    layers: Sequence[str] = ("queries", "values")

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise DataError(f"task.lora.rank is {self.rank}; it must be at least 1, or task.lora=null to train it all.")
        if not self.alpha > 0:
            raise DataError(f"task.lora.alpha is {self.alpha}; it must be above 0.")
        unknown = [name for name in self.layers if name not in LAYERS]
        if unknown or not self.layers:
            raise DataError(f"task.lora.layers is {list(self.layers)}; name some of {', '.join(LAYERS)}.")
