"""What language models are asked from outside, whatever their tokens are: texts, or tokens."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


def texts_of(inputs: Any) -> list[str] | None:
    """The texts in a string, a list, an array or a table's column; None where the inputs are numbers."""
    values = np.array(inputs)
    return None if values.dtype.kind in "biuf" else [str(value) for value in values.reshape(-1)]


def next_tokens(model: nn.Module, inputs: Any, context: int) -> NDArray[np.float32]:
    """Probabilities (samples, vocabulary) of the token after each row of tokens (samples, time)."""
    tokens = torch.from_numpy(np.array(inputs, np.int64))
    logits: Tensor = model(tokens[:, -context:])
    probabilities: NDArray[np.float32] = logits[:, -1].float().softmax(-1).numpy()
    return probabilities
