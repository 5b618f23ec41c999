"""A training state as plain tensors and JSON values, in memory or in one file; nothing in it can be executed."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from trainers.errors import DataError

Json = dict[str, Any]

RANDOM = "random"  # the part of a state that differs between data-parallel ranks


@dataclass(frozen=True)
class Snapshot:
    """Everything that the next step depends on.

    tensors: copies in CPU memory, named "parameters.…", "buffers.…", "optimizer.…", "random.…".
    values: JSON values under "step", "optimizer", "scaler", "random"; "shards": names of tensors of which each rank has
    its own; "frozen": digest of the parameters that are not kept because they never change, if there are any.
    """

    tensors: dict[str, Tensor]
    values: Json

    @property
    def bytes(self) -> int:
        """Memory that the tensors take."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    def shared(self) -> "Snapshot":
        """The part that is equal on every data-parallel rank; its tensors are this snapshot's own."""
        return Snapshot(
            {name: tensor for name, tensor in self.tensors.items() if not self._is_own(name)},
            {name: value for name, value in self.values.items() if name != RANDOM},
        )

    def own(self) -> "Snapshot":
        """The part that belongs to one rank: its shards and its random generators."""
        return Snapshot(
            {name: tensor for name, tensor in self.tensors.items() if self._is_own(name)},
            {RANDOM: self.values[RANDOM]},
        )

    def joined(self, other: "Snapshot") -> "Snapshot":
        """The inverse of taking `shared` and `own` apart."""
        return Snapshot(self.tensors | other.tensors, self.values | other.values)

    def write(self, path: Path) -> None:
        """Write one safetensors file whose header carries the JSON values; making it atomic is the caller's part."""
        save_file(self.tensors, path, metadata={"values": json.dumps(self.values)})

    @classmethod
    def read(cls, path: Path) -> "Snapshot":
        """Read a file that `write` made. Raises DataError if it is anything else; never executes what it reads."""
        try:
            with safe_open(path, framework="pt") as file:
                values = json.loads(file.metadata()["values"])
                return cls({name: file.get_tensor(name) for name in file.keys()}, values)  # noqa: SIM118
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path} is not a snapshot ({error}); use an older one.") from error

    def _is_own(self, name: str) -> bool:
        return name.startswith(f"{RANDOM}.") or name in self.values["shards"]
