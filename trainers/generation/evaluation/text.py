"""What a task offers for its model to be scored on at long context."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from trainers.generation.tokenizer import Tokenizer


@dataclass(frozen=True)
class Text:
    """tokens: of the validation split. context: tokens that the model looks back on in training."""

    tokenizer: Tokenizer
    tokens: NDArray[np.uint8] | NDArray[np.int32]
    context: int

    def window(self, begin: int, length: int) -> list[int]:
        """Tokens from `begin` on."""
        window: list[int] = self.tokens[begin : begin + length].tolist()
        return window


@runtime_checkable
class OffersText(Protocol):
    """A task whose model is a `Transformer` over text."""

    @property
    def text(self) -> Text:
        """The validation split, once the data are built."""
