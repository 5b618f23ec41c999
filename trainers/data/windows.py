"""A text as a data set of equally long windows of tokens."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Windows:
    """Sample i is the `length` tokens from `starts[i]` on, as int64."""

    def __init__(self, text: NDArray[np.uint8] | NDArray[np.int32], starts: NDArray[np.int64], length: int) -> None:
        self._text = torch.from_numpy(text)
        self._starts = torch.from_numpy(starts)
        self._places = torch.arange(length)

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: Tensor) -> Tensor:
        return self._text[self._starts[index, None] + self._places].long()
