"""A gang of Ray actors that stands and falls together: placed at once, called at once, ended by the first error."""

import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any, NoReturn

from orchestrator.cluster import silence
from orchestrator.cluster.failures import Failure, JobFailed, Kind, failure_of, told
from orchestrator.cluster.job_spec import JobSpec
from orchestrator.cluster.patience import Patience
from orchestrator.cluster.placement import place
from orchestrator.cluster.silence import Process
from orchestrator.cluster.worker import Worker

__all__ = ["Gang", "JobFailed", "every"]

LOG_LINES = 20
_STANDING = ("world_size", "cpus", "gpus", "pins", "interface", "search_paths")  # of a job: what its actors rest on
_BLAME_SECONDS = 1.0  # how long to look for the cause behind a first error that may be only its echo
_FAREWELL_SECONDS = 2.0  # a head that lives answers in milliseconds, one that is gone would be waited for a minute
_GRACE_SECONDS = 1.0  # for answers that are on their way when time is up, say because the driver was stopped meanwhile


class Gang:
    """One actor a rank, in one placement group. After a JobFailed there is nothing left to call."""

    def __init__(self, spec: JobSpec, patience: Patience | None = None, standing_by: bool = False) -> None:
        """Place and create the actors. Raises UserError when the cluster cannot hold them, now or ever.

        standing_by: they take no resources until the gang that they may replace is gone, nor after.
        """
        self._spec = spec
        self._patience = patience or Patience(call_seconds=spec.call_seconds)
        self._processes: list[Process] = []
        self._namespace = f"{spec.name}-{uuid.uuid4().hex[:8]}"  # a job's name may come back while its last bearer ends
        self._room = None if standing_by else place(spec, self._namespace)
        self._actors = [self._create(rank) for rank in range(spec.world_size)]
        self._processes = self.call("whereabouts")

    @property
    def pids(self) -> list[int]:
        """Process ids in rank order, each on its own node."""
        return [process.pid for process in self._processes]

    def call(self, method: str, *arguments: Any, units: int = 1) -> list[Any]:
        """Call a method on every rank; the answers in rank order. Raises JobFailed on the first error of any.

        units: how many equal pieces the call is made of, from which follows how long it may take.
        """
        return self._gather(self.refer(method, *arguments), method, units)

    def call_each(self, method: str, *arguments: Sequence[Any]) -> list[Any]:
        """Call a method on every rank, each with its own of every argument, which may be a reference to it."""
        called = [getattr(actor, method).remote(*own) for actor, *own in zip(self._actors, *arguments, strict=True)]
        return self._gather(called, method)

    def refer(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method on every rank; references to the answers in rank order, without waiting for them."""
        return [getattr(actor, method).remote(*arguments) for actor in self._actors]

    def call_rank(self, rank: int, method: str, *arguments: Any) -> Any:
        """Call a method on one rank."""
        return self._gather([getattr(self._actors[rank], method).remote(*arguments)], method, first_rank=rank)[0]

    def answers(self, seconds: float) -> bool:
        """Whether every rank answers a simple question in time."""
        import ray

        asked = self.refer("whereabouts")
        done, _ = ray.wait(asked, num_returns=len(asked), timeout=seconds)
        return len(done) == len(asked) and not any(failure_of(rank, each) for rank, each in enumerate(done))

    def fits(self, spec: JobSpec) -> bool:
        """Whether another job's ranks would stand just as these do."""
        return all(getattr(spec, name) == getattr(self._spec, name) for name in _STANDING)

    def renew(self, spec: JobSpec) -> None:
        """Serve another job, which must fit, from its very beginning."""
        self._spec, self._patience = spec, Patience(call_seconds=spec.call_seconds)
        self.call("renew", spec)

    def end(self) -> None:
        """End every actor at once and give its place back, if there is still a Ray to take it."""
        import ray

        if not ray.is_initialized():
            return
        for actor in self._actors:
            ray.kill(actor)
        for process in self._processes:  # one that is stopped would not hear of it
            if process.node == ray.util.get_node_ip_address():
                silence.end(process)
        if self._room is None:
            return
        farewell = Thread(target=self._room.give_back, daemon=True)
        farewell.start()
        farewell.join(_FAREWELL_SECONDS)

    def _create(self, rank: int) -> Any:
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        options: dict[str, Any] = {
            "name": f"{self._spec.name}/rank-{rank}",
            "namespace": self._namespace,
            "max_restarts": 0,  # a lone new rank could not rejoin the others
            "num_cpus": 0,
        }
        if self._room is not None:
            bundle = PlacementGroupSchedulingStrategy(self._room.group, self._room.bundle(rank))
            options |= {"num_cpus": self._spec.cpus, "num_gpus": self._spec.gpus, "scheduling_strategy": bundle}
            if self._room.lent and self._spec.pins:
                options["resources"] = {self._spec.pins[rank]: 0.001}
        return ray.remote(Worker).options(**options).remote(self._spec, rank)

    def _gather(self, references: list[Any], method: str, units: int = 1, first_rank: int = 0) -> list[Any]:
        """Wait for all answers, or for the first error: other ranks may wait for the failed one for ever."""
        import ray

        ranks = {reference: rank for rank, reference in enumerate(references, first_rank)}
        waiting, begin, limit = list(references), monotonic(), self._patience.limit(method, units)
        while waiting:
            done, waiting = ray.wait(waiting, timeout=max(begin + limit - monotonic(), _GRACE_SECONDS))
            if not done:
                self._fail_silent([ranks[each] for each in waiting], method, begin)
            if failure := failure_of(ranks[done[0]], done[0]):
                self._fail(self._cause(failure, waiting, ranks))
        self._patience.note(method, units, monotonic() - begin)
        answers: list[Any] = ray.get(references)
        return answers

    def _cause(self, first: Failure, waiting: list[Any], ranks: dict[Any, int]) -> Failure:
        """The failure to blame: a death, if one shows up within a moment, else what came first."""
        import ray

        until = monotonic() + _BLAME_SECONDS
        found = first
        while waiting and not found.died and (left := until - monotonic()) > 0:
            done, waiting = ray.wait(waiting, timeout=left)
            later = failure_of(ranks[done[0]], done[0]) if done else None
            found = later if later and later.died else found
        return found

    def _fail(self, failure: Failure) -> NoReturn:
        self.end()
        raise told(failure, self._log_lines(failure)) from failure.error

    def _fail_silent(self, ranks: list[int], method: str, begin: float) -> NoReturn:
        """Some ranks have not answered in time: see which of them the others wait for."""
        silent = f"no answer to {method} for {monotonic() - begin:.0f} s"
        found = silence.stands([self._processes[rank] for rank in ranks]) if self._processes else []
        self.end()
        if not found:
            raise JobFailed(ranks[0], silent, [], Kind.SILENT, begin)
        number = silence.blamed(found)
        sentence = f"{silent}; {found[number].words}"
        raise JobFailed(ranks[number], sentence, found[number].stack, Kind.SILENT, begin)

    def _log_lines(self, failure: Failure) -> list[str]:
        """The last lines of what the failed rank said: its traceback, or what it wrote before it died."""
        if not failure.died:
            return str(failure.error).splitlines()[-LOG_LINES:]
        if not self._processes or not (log := self._processes[failure.rank].log):
            return []
        if not Path(log).is_file():
            return [f"its log is {log} on node {self._processes[failure.rank].node}"]
        return Path(log).read_text(errors="replace").splitlines()[-LOG_LINES:]


def every(answers: Iterable[Any]) -> Any:
    """The one answer on which all ranks agree. Raises RuntimeError if they don't: the ranks have drifted apart."""
    first, *others = list(answers)
    if any(other != first for other in others):
        raise RuntimeError(f"The ranks disagree where they must not: {[first, *others]}.")
    return first
