"""A gang of Ray actors that stands and falls together: placed at once, called at once, ended by the first error."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

from orchestrator.cluster.connection import check_capacity
from orchestrator.cluster.job_spec import JobSpec
from orchestrator.cluster.worker import Worker
from orchestrator.errors import UserError

LOG_LINES = 20
_BLAME_SECONDS = 1.0  # how long to look for the cause behind a first error that may be only its echo
_FAREWELL_SECONDS = 2.0  # a head that lives answers in milliseconds, one that is gone would be waited for a minute


class JobFailed(Exception):  # noqa: N818
    """A rank failed and the gang was ended. `sentence` says what happened, `log` holds the rank's last lines."""

    def __init__(self, rank: int, sentence: str, log: list[str]) -> None:
        super().__init__(f"rank {rank} failed: {sentence}")
        self.rank, self.sentence, self.log = rank, sentence, log


@dataclass(frozen=True)
class _Failure:
    """How one rank's call went wrong. `died`: the process is gone, which other ranks' errors are echoes of."""

    rank: int
    error: Exception
    died: bool


class Gang:
    """One actor a rank, in one placement group. After a JobFailed there is nothing left to call."""

    def __init__(self, spec: JobSpec) -> None:
        """Place and create the actors. Raises UserError when the cluster cannot hold them, now or ever."""
        self._spec = spec
        self._logs: list[Path | None] = [None] * spec.world_size
        self._namespace = f"{spec.name}-{uuid.uuid4().hex[:8]}"  # a job's name may come back while its last bearer ends
        self._group = _place(spec, self._namespace)
        self._actors = [self._create(rank) for rank in range(spec.world_size)]
        found = self.call("whereabouts")
        self._nodes = [node for node, _, _ in found]
        self._logs = [Path(log) if log else None for _, _, log in found]
        self.pids = [pid for _, pid, _ in found]

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method on every rank; the answers in rank order. Raises JobFailed on the first error of any."""
        return self._gather(self.refer(method, *arguments))

    def call_each(self, method: str, *arguments: Sequence[Any]) -> list[Any]:
        """Call a method on every rank, each with its own of every argument, which may be a reference to it."""
        return self._gather(
            [getattr(actor, method).remote(*own) for actor, *own in zip(self._actors, *arguments, strict=True)]
        )

    def refer(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method on every rank; references to the answers in rank order, without waiting for them."""
        return [getattr(actor, method).remote(*arguments) for actor in self._actors]

    def call_rank(self, rank: int, method: str, *arguments: Any) -> Any:
        """Call a method on one rank."""
        return self._gather([getattr(self._actors[rank], method).remote(*arguments)], first_rank=rank)[0]

    def end(self) -> None:
        """End every actor at once and give its place back, if there is still a Ray to take it."""
        import ray

        if not ray.is_initialized():
            return
        for actor in self._actors:
            ray.kill(actor)
        farewell = Thread(target=ray.util.remove_placement_group, args=(self._group,), daemon=True)
        farewell.start()
        farewell.join(_FAREWELL_SECONDS)

    def _create(self, rank: int) -> Any:
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        options = {
            "name": f"{self._spec.name}/rank-{rank}",
            "namespace": self._namespace,
            "num_cpus": self._spec.cpus,
            "num_gpus": self._spec.gpus,
            "max_restarts": 0,  # a lone new rank could not rejoin the others
            "scheduling_strategy": PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=rank),
        }
        return ray.remote(Worker).options(**options).remote(self._spec, rank)

    def _gather(self, references: list[Any], first_rank: int = 0) -> list[Any]:
        """Wait for all answers, or for the first error: other ranks may wait for the failed one for ever."""
        import ray

        ranks = {reference: rank for rank, reference in enumerate(references, first_rank)}
        waiting = list(references)
        while waiting:
            done, waiting = ray.wait(waiting, timeout=self._spec.call_seconds)
            if not done:
                silent = f"no answer within {self._spec.call_seconds:g} s; the gang was ended"
                self._fail(_Failure(ranks[waiting[0]], TimeoutError(silent), died=False))
            if failure := _failure(ranks[done[0]], done[0]):
                self._fail(self._cause(failure, waiting, ranks))
        answers: list[Any] = ray.get(references)
        return answers

    def _cause(self, first: _Failure, waiting: list[Any], ranks: dict[Any, int]) -> _Failure:
        """The failure to blame: a death, if one shows up within a moment, else what came first."""
        import ray

        until = monotonic() + _BLAME_SECONDS
        found = first
        while waiting and not found.died and (left := until - monotonic()) > 0:
            done, waiting = ray.wait(waiting, timeout=left)
            later = _failure(ranks[done[0]], done[0]) if done else None
            found = later if later and later.died else found
        return found

    def _fail(self, failure: _Failure) -> None:
        self.end()
        raise _told(failure, self._log_lines(failure)) from failure.error

    def _log_lines(self, failure: _Failure) -> list[str]:
        """The last lines of what the failed rank said: its traceback, or what it wrote before it died."""
        path = self._logs[failure.rank]
        if not failure.died:
            return str(failure.error).splitlines()[-LOG_LINES:]
        if path is None or not path.is_file():
            return [f"its log is {path} on node {self._nodes[failure.rank]}"] if path else []
        return path.read_text(errors="replace").splitlines()[-LOG_LINES:]


def _place(spec: JobSpec, name: str) -> Any:
    """A placement group with room for every rank. Raises UserError at once if no node can ever give it."""
    import ray

    resources = {name: float(amount) for name, amount in ray.cluster_resources().items()}
    check_capacity(spec.world_size, spec.cpus, spec.gpus, resources)
    group = ray.util.placement_group(_bundles(spec), strategy="PACK", name=name)
    begin = monotonic()
    while not group.wait(timeout_seconds=0.5):
        stats = ray.util.placement_group_table(group)["stats"]
        if stats["scheduling_state"] == "INFEASIBLE":
            ray.util.remove_placement_group(group)
            raise UserError(
                f"cluster.workers={spec.world_size} need {spec.cpus:g} CPU and {spec.gpus:g} GPU each on one node, "
                f"and no node is that large (the cluster's total: {_amounts(resources)}); ask for less a worker"
            )
        if monotonic() - begin > spec.place_seconds:
            ray.util.remove_placement_group(group)
            raise UserError(
                f"cluster.workers={spec.world_size} found no room within {spec.place_seconds:g} s on a busy cluster, "
                f"free: {_amounts(ray.available_resources())}; wait for other jobs, or ask for less"
            )
    return group


def _bundles(spec: JobSpec) -> list[dict[str, float]]:
    """What each rank needs where it stands."""
    needs = {"CPU": spec.cpus, **({"GPU": spec.gpus} if spec.gpus else {})}
    return [{**needs, pin: 0.001} for pin in spec.pins] or [needs] * spec.world_size


def _amounts(resources: dict[str, float]) -> str:
    return ", ".join(f"{resources[name]:g} {name}" for name in ("CPU", "GPU") if name in resources) or "nothing"


def _failure(rank: int, reference: Any) -> _Failure | None:
    """How a finished call failed, or None if it did not."""
    import ray

    try:
        ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        return _Failure(rank, error, died=False)
    except ray.exceptions.RayError as error:
        return _Failure(rank, error, died=True)
    return None


def _told(failure: _Failure, log: list[str]) -> Exception:
    """What the driver raises: a UserError for what the person can mend in data or configuration, else a JobFailed."""
    from trainers.errors import DataError

    if failure.died:
        return JobFailed(failure.rank, _death(failure.error), log)
    cause = getattr(failure.error, "cause", failure.error)
    if isinstance(cause, UserError | DataError):
        return UserError(str(cause))
    return JobFailed(failure.rank, f"{type(cause).__name__}: {cause}", log)


def _death(error: Exception) -> str:
    """Why a process is gone, in a sentence out of Ray's paragraph."""
    if "running low on memory" in str(error):
        return "its process was ended because the node ran low on memory; use fewer workers or a smaller batch_size"
    return "its process died unexpectedly (killed from outside, out of memory, or crashed in native code)"


def every(answers: Iterable[Any]) -> Any:
    """The one answer on which all ranks agree. Raises RuntimeError if they don't: the ranks have drifted apart."""
    first, *others = list(answers)
    if any(other != first for other in others):
        raise RuntimeError(f"The ranks disagree where they must not: {[first, *others]}.")
    return first
