"""A kept state in a form that Ray's object store holds without copying: plain arrays, and JSON values beside them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

    from trainers.snapshot import Snapshot

Json = dict[str, Any]


@dataclass(frozen=True)
class Parcel:
    """Of every tensor by name its bytes, and its type (in torch's word, such as "bfloat16") and shape; JSON values."""

    arrays: dict[str, NDArray[np.uint8]]
    forms: dict[str, tuple[str, tuple[int, ...]]]
    values: Json


def pack(snapshot: "Snapshot") -> Parcel:
    """A parcel that shares the snapshot's memory."""
    tensors = snapshot.tensors.items()
    arrays = {name: _bytes(tensor) for name, tensor in tensors}
    forms = {name: (str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)) for name, tensor in tensors}
    return Parcel(arrays, forms, snapshot.values)


def unpack(parcel: Parcel) -> "Snapshot":
    """The snapshot again, in memory of its own: what lies in the object store must not be written to."""
    import torch

    from trainers.snapshot import Snapshot

    tensors = {name: torch.empty(shape, dtype=getattr(torch, kind)) for name, (kind, shape) in parcel.forms.items()}
    for name, tensor in tensors.items():
        np.copyto(_bytes(tensor), parcel.arrays[name])
    return Snapshot(tensors, parcel.values)


def _bytes(tensor: "Tensor") -> NDArray[np.uint8]:
    """Its memory, if it is contiguous, else a copy."""
    import torch

    array: NDArray[np.uint8] = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
    return array
