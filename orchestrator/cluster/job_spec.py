"""What one training is, as plain values that travel to its workers."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from trainers.communication import Backend

Json = dict[str, Any]


@dataclass(frozen=True)
class JobSpec:
    """One training by `world_size` ranks.

    name: what the dashboard calls it. task: a `_target_` tree. optimizer: a `_target_` tree with `_partial_`.
    options: the fields of `trainers.TrainerOptions`; the device follows from `gpus`.
    cpus, gpus: of one rank. search_paths: folders from which the workers import a person's own modules.
    share_folder: whether the nodes see the driver's snapshot folder; None finds out.
    pins: a Ray resource for each rank that ties it to its place; empty: anywhere. plans: what gradients travel by, in
    JSON form; empty: the backend's own way. interface: of the data. planned_options: how plans are carried out.
    elastic: whether a state that another number of ranks has saved may be taken up.
    place_seconds: how long to wait for room on a busy cluster. peer_seconds: how long a rank waits for another in a
    collective. call_seconds: how long the driver waits for any one answer.
    """

    name: str
    task: Json
    optimizer: Json
    options: Json
    world_size: int = 1
    cpus: float = 1
    gpus: float = 0
    backend: Literal["auto", "gloo", "nccl"] = "auto"
    search_paths: list[str] = field(default_factory=list)
    share_folder: bool | None = None
    pins: tuple[str, ...] = ()
    plans: list[Json] = field(default_factory=list)
    interface: str | None = None
    planned_options: Json = field(default_factory=dict)
    elastic: bool = False
    place_seconds: float = 60.0
    peer_seconds: float = 300.0
    call_seconds: float = 1800.0

    def backend_on(self, device: str) -> "Backend":
        """The torch.distributed backend that the ranks use on a device."""
        if self.backend != "auto":
            return self.backend
        return "nccl" if device == "cuda" else "gloo"
