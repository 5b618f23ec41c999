"""What a person may ask of a method, refused in one sentence if it can't be."""

import numpy as np
import torch
from numpy.typing import NDArray

from trainers.errors import GenerationError
from trainers.generation.sparse_attention.method import LayerStore


def check_target(target: float) -> None:
    if not 0 < target <= 1:
        raise GenerationError(
            f"The target mass is {target}; give a share of the attention mass in (0, 1], such as 0.9."
        )


def check_budget(budget: int, least: int) -> None:
    if budget < least:
        raise GenerationError(f"The budget is {budget} tokens a key-value head; this method reads at least {least}.")


def keys_on_cpu(store: LayerStore) -> NDArray[np.float32]:
    """A view of the layer's keys for compiled code."""
    if store.keys.device.type != "cpu" or store.keys.dtype != torch.float32:
        raise GenerationError(
            f"Tactic reads keys on the CPU in float32 and these are {store.keys.dtype} on {store.keys.device}; "
            "move the model to the CPU or choose full attention."
        )
    return store.keys.numpy()
