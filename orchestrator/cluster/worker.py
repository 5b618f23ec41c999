"""One rank of a job, as a Ray actor holds it: it builds the trainer and does what the driver calls for."""

import faulthandler
import os
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from orchestrator.cluster.job_spec import JobSpec
from orchestrator.cluster.part_writing import SHARED_FILE, PartWriting, rank_file
from orchestrator.cluster.rank_metrics import RankMetrics
from orchestrator.cluster.silence import DUMP, Process, own_process
from orchestrator.errors import UserError
from orchestrator.learning_rate.dimensions import Settings

if TYPE_CHECKING:
    from comm_plans.runtime.options import PlannedOptions
    from orchestrator.cluster.parcel import Parcel
    from trainers.snapshot import Snapshot

Json = dict[str, Any]
_SILENCE = 60.0  # seconds after which a rank that sends nothing in a planned collective is given up


class Worker:
    """Ray runs one method at a time. `host_store` and `communication` are called on rank 0, the others on all ranks.

    Ray ends the process, and with it the process group, when the driver kills the actor or dies.
    """

    def __init__(self, spec: JobSpec, rank: int) -> None:
        sys.path[:0] = [path for path in spec.search_paths if path not in sys.path]
        self._spec, self._rank = spec, rank
        self._kept: dict[str, Snapshot] = {}
        self._part: Snapshot | None = None  # what is being written or was written last
        self._writing: PartWriting | None = None
        self._open = ExitStack()
        self._metrics = RankMetrics(spec.name, rank)

    def renew(self, spec: JobSpec) -> None:
        """Leave the other ranks and forget the last job, for the next one."""
        rank = self._rank
        self._open.close()
        self.__dict__.clear()
        Worker.__init__(self, spec, rank)

    def whereabouts(self) -> Process:
        """This process, and that it writes its stack to its stderr when asked to by a signal."""
        import ray

        faulthandler.register(DUMP, file=2, all_threads=True)
        return own_process(ray.util.get_node_ip_address())

    def host_store(self) -> tuple[str, int]:
        """Rank 0 opens the meeting point on a port that the system picks; returns where."""
        import ray

        from trainers.communication import host_store

        address = ray.util.get_node_ip_address()
        self._store = host_store(address, self._spec.world_size)
        return address, int(self._store.port)

    def import_trainer(self) -> None:
        """Load torch and what else training needs, on all ranks at once."""
        import trainers.trainer  # noqa: F401

    def build(self, address: str, port: int) -> tuple[str, int]:
        """Meet the other ranks and build the trainer; returns the device and the number of parameters."""
        from orchestrator.config import build
        from trainers.trainer import Trainer, TrainerOptions

        device = "cuda" if self._spec.gpus else "cpu"
        self._meet(address, port, device)
        task, optimizer = build(self._spec.task), build(self._spec.optimizer)
        options = TrainerOptions(**{**self._spec.options, "device": device})
        self._trainer = Trainer(task, optimizer, options, self._rank, self._spec.world_size)
        return device, self._trainer.parameters_count

    def train(
        self, rates: Sequence[float], settings: Settings, stop_above: float | None = None, more: bool = False
    ) -> list[float]:
        """One step a rate; this rank's losses. The rates really used are checked: a restored optimizer has its own."""
        begin = monotonic()
        losses = self._trainer.train(rates, settings, stop_above, more)
        self._metrics.note(losses, monotonic() - begin, self.communication())
        if losses and not more:
            self._check_rates(rates[len(losses) - 1])
        return losses

    def validate(self, split: str) -> dict[str, float]:
        """Mean metrics over a split, equal on every rank."""
        return self._trainer.validate(split)

    def training_samples(self) -> int:
        """How many samples the training split has."""
        return self._trainer.training_samples

    def validation_samples(self) -> int:
        """How many held-out samples a validation scores."""
        return self._trainer.validation_samples

    def evaluate(self) -> tuple[dict[str, float], list[str]]:
        """The task's own evaluation, which rank 0 has."""
        return self._trainer.evaluate()

    def measurements(self) -> dict[str, float]:
        """The task's numbers about the steps since the last call, equal on every rank."""
        return self._trainer.measurements()

    def communication(self) -> Json | None:
        """How this rank's group decides between plan and backend, and what it has moved; None without plans."""
        from trainers.communication import measured_communication

        return measured_communication()

    def plan_overlap(self) -> Json:
        """Find, by trial steps, how steps overlap, and do it so; equal on every rank but for the timelines."""
        return self._trainer.plan_overlap().to_json()

    def follow_overlap(self, layout: Json) -> None:
        """Overlap steps as another gang of this run has found it."""
        from trainers.overlap.training.layout import Layout

        self._trainer.follow(Layout.from_json(layout))

    def gradient_bytes(self) -> int:
        """Bytes of the gradients that a step sums over ranks."""
        return self._trainer.trials.gradient_bytes

    def trial_seconds(self, steps: int, together: bool) -> list[float]:
        """Seconds of so many steps that leave no trace; each rank alone, or as they are."""
        return self._trainer.trials.seconds(steps, together)

    def trial_sums(self, sizes: Sequence[int], rounds: int) -> dict[str, list[list[float]]]:
        """Seconds of sums over ranks by plan and by the backend."""
        from trainers.communication import trial_sums

        return trial_sums(sizes, rounds)

    def noise_scale(self, batches: int) -> float:
        """The gradient noise scale in samples, equal on every rank."""
        return self._trainer.trials.noise_scale(batches)

    def memory(self) -> tuple[int, int]:
        """Bytes that this rank has held at most, and bytes that are free where it stands."""
        return self._trainer.memory

    def use_batch(self, batch_size: int) -> None:
        """Take batches of so many samples from now on."""
        self._trainer.use_batch(batch_size)

    def go_by_plan_from(self, size_bytes: int | None) -> None:
        """Take the group's plans for so many bytes on; None: for none."""
        from trainers.communication import go_by_plan_from

        go_by_plan_from(size_bytes)

    def keep(self, name: str) -> None:
        """Keep the present state in memory; the memory of an earlier one of the same name is used again."""
        self._kept[name] = self._trainer.snapshot(reuse=self._kept.pop(name, None))

    def rewind(self, name: str) -> None:
        """Return to a kept state."""
        if name not in self._kept:
            raise RuntimeError(f"No state called {name!r} is kept; keep it before rewinding to it.")
        self._trainer.restore(self._kept[name])

    def forget(self, name: str) -> None:
        """Give the memory of a kept state back."""
        self._kept.pop(name, None)

    def kept(self, name: str) -> "Parcel":
        """A kept state, for the same rank of another copy of the job."""
        from orchestrator.cluster.parcel import pack

        return pack(self._kept[name])

    def take(self, name: str, parcel: "Parcel") -> None:
        """Keep under `name` what another copy's rank has kept."""
        from orchestrator.cluster.parcel import unpack

        self.forget(name)
        self._kept[name] = unpack(parcel)

    def prepare_parts(self) -> tuple[int, int]:
        """Copy the state that `start_writing` will write; returns its step and the bytes that this rank will write."""
        if self._writing is not None:
            self._writing.join()
        self._part = self._trainer.snapshot(reuse=self._part)
        return self._trainer.step, (self._part if self._rank == 0 else self._part.own()).bytes

    def start_writing(self, folder: Path | None) -> None:
        """Write this rank's files beside whatever is called next; None: into a folder of this node."""
        assert self._part is not None
        self._writing = PartWriting(self._part, self._rank, folder)

    def is_writing(self) -> bool:
        """Whether `start_writing` is still under way."""
        return self._writing is not None and self._writing.is_alive()

    def finish_writing(self) -> str | None:
        """Wait until all is written; why it could not be, if so."""
        assert self._writing is not None
        self._writing.join()
        return self._writing.trouble

    def written_parts(self) -> dict[str, bytes]:
        """The files as bytes, for a driver whose disk this node cannot reach."""
        assert self._writing is not None
        return self._writing.taken()

    def read_parts(self, folder: Path, saved_by: int) -> int:
        """Take up the state whose files, of so many ranks, lie in `folder`; returns its step."""
        from trainers.snapshot import Snapshot

        names = (SHARED_FILE, rank_file(self._rank % saved_by))
        shared, own = (Snapshot.read(folder / name) for name in names)
        if saved_by != self._spec.world_size and shared.values["shards"]:
            raise UserError(
                f"{folder} has parts of the model that {saved_by} workers keep, which {self._spec.world_size} cannot "
                f"share out anew; go on with cluster.workers={saved_by}"
            )
        self._trainer.restore(shared.joined(own))
        return self._trainer.step

    def receive_parts(self, files: dict[str, bytes], saved_by: int) -> int:
        """`read_parts` from bytes."""
        with tempfile.TemporaryDirectory() as folder:
            for name in (SHARED_FILE, rank_file(self._rank % saved_by)):
                (Path(folder) / name).write_bytes(files[name])
            return self.read_parts(Path(folder), saved_by)

    def sees(self, probe: Path, content: str) -> bool:
        """Whether a file that the driver wrote is here as well, beside which this rank can write."""
        return probe.is_file() and probe.read_text() == content and os.access(probe.parent, os.W_OK)

    def weights_sha256(self) -> str:
        """Digest over all parameters and buffers."""
        return self._trainer.weights_sha256()

    def weights_file(self) -> bytes:
        """The whole model's weights as the bytes of a safetensors file, on rank 0; nothing on the others."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "weights.safetensors"
            self._trainer.save_weights(path)
            return path.read_bytes() if self._rank == 0 else b""

    def load_weights(self, content: bytes) -> None:
        """Take the weights of a safetensors file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "weights.safetensors"
            path.write_bytes(content)
            self._trainer.load_weights(path)

    def _check_rates(self, wanted: float) -> None:
        used = self._trainer.rates()
        if any(rate != wanted for rate in used):
            raise RuntimeError(f"Rank {self._rank} used the rates {used} where {wanted} was asked for.")

    def _meet(self, address: str, port: int, device: str) -> None:
        from trainers.communication import join_store, process_group

        if self._spec.interface:
            os.environ["GLOO_SOCKET_IFNAME"] = _present(self._spec.interface, self._rank)
        if self._spec.world_size == 1:
            return
        if self._rank > 0:
            self._store = join_store(address, port, self._spec.world_size)
        backend = self._spec.backend_on(device)
        whole = (self._store, self._rank, self._spec.world_size, backend, self._spec.peer_seconds)
        self._open.enter_context(process_group(*whole, planned=self._planned()))

    def _planned(self) -> "PlannedOptions | None":
        """How the group goes by plan, if there is one."""
        if not self._spec.plans:
            return None
        from comm_plans.live import LivePlans
        from comm_plans.runtime.options import PlannedOptions

        plans = LivePlans.from_documents(self._spec.plans)
        options = {"interface": self._spec.interface, "deadline": _SILENCE, **self._spec.planned_options}
        return PlannedOptions(plans=plans, **options)


def _present(interface: str, rank: int) -> str:
    """The network interface, which this node must have. Raises UserError."""
    names = [name for _, name in socket.if_nameindex()]
    if interface not in names:
        raise UserError(
            f"communication.interface={interface} is not there on the node of rank {rank}; "
            f"name one of {', '.join(names)}"
        )
    return interface
