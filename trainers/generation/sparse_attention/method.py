"""The seam of sparse attention: which stored tokens a decoding step reads. One method a name; full attention is one."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from trainers.generation.runs import Runs


@dataclass
class LayerStore:
    """One sequence's keys and values in one layer: (key_value_heads, slots, head_width), keys with their positions in.

    The sequence holds slots first … first + length - 1, in any order that its method likes: keys and values are views
    of the cache, and whoever reorders them reorders the cache.
    """

    keys: Tensor
    values: Tensor
    first: int
    length: int


class Reader(ABC):
    """What one sequence reads in one layer while it is continued token by token.

    needed: tokens that each head (key_value_heads, group) would have read by itself in the last step, if that is known.
    """

    needed: NDArray[np.int64] | None = None

    @abstractmethod
    def select(self, queries: NDArray[np.float32]) -> Runs:
        """The runs that a step's queries (heads, head_width) read, a row each key-value head; the newest is stored."""


class Method(ABC):
    """A way to read: makes a reader for each sequence and layer when its prompt is stored."""

    @abstractmethod
    def reader(self, layer: int, store: LayerStore, queries: Tensor) -> Reader:
        """A reader of `store`, whose `length` grows by one before each step.

        queries: (heads, window, head_width), those of the prompt's last tokens, for methods that judge by them.
        """
