"""The decisions before a run's first step, one after another, each of them an event with what it rests on.

A run decides once, on its first workers. What has been decided is applied to whoever comes later, and what is still
open then stays as given: workers may have failed of what was tried.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from orchestrator.config import Config
from orchestrator.decide.batch import batch
from orchestrator.decide.bench import STEPS, Bench, Tryable, all_steps, cost_of, pace
from orchestrator.decide.budget import SHARE
from orchestrator.decide.communication import can_go_by_plan, communication
from orchestrator.decide.finding import Finding, nothing
from orchestrator.decide.overlapped import OFF, Search, overlapped
from orchestrator.decide.recorded import changed, decisions, with_decisions
from orchestrator.events import Event, PlanChosen
from orchestrator.plan_choice import PlanChoice

_TRIED = ("communication", "batch", "overlap")
ORDER = (*_TRIED, "rate")
_PACE_STEPS = 2 * (STEPS + 1)  # that tell how long a step takes, together and alone

Emit = Callable[[Event], None]


class Deciding:
    """What is decided on one gang of workers. first: whether it is the run's first one. events: the run's so far.

    choice: what the workers' gradients go by, or can.
    """

    def __init__(self, config: Config, events: Sequence[Event], first: bool) -> None:
        known = decisions(events)
        wanted = [what for what in ORDER if getattr(config.decide, what) == "measured"]
        self._config = with_decisions(config, events)
        self._open = [what for what in wanted if what not in known]
        self._why_not = _why_not(self._config, first)
        self.choice = PlanChoice()

    @property
    def beginning(self) -> Config:
        """The configuration that the workers are started with: with plans, where these are to be tried."""
        config = self._config
        if self.tries("overlap"):
            config = changed(config, OFF)
        if self.tries("communication") and can_go_by_plan(config):
            config = replace(config, communication=replace(config.communication, method="planned", strict=False))
        return config

    def tries(self, what: str) -> bool:
        """Whether something is decided on these workers."""
        return self._why_not is None and what in self._open

    def settled(self, job: Tryable, replicas: Sequence[Tryable], search: Search, emit: Emit) -> Config:
        """Decide what is open, and let the workers do so; the configuration from now on.

        search: finds a pipeline for the workers, and lets them follow.
        """
        begun = monotonic()
        bench = self._bench(job, replicas, begun)
        for what in self._open:
            finding = self._finding(what, bench, search)
            ended = monotonic()
            event = _effective(finding, self._config).decided(what, ended - begun)
            begun = ended
            self._config = changed(self._config, event.chosen)
            if bench is not None:
                bench.follow(event)
            if what == "communication" and self.choice.plans and self._config.communication.method == "backend":
                emit(PlanChosen("none"))
            emit(event)
        return self._config

    def _bench(self, job: Tryable, replicas: Sequence[Tryable], begun: float) -> Bench | None:
        """None where nothing is to be tried."""
        if not any(map(self.tries, _TRIED)):
            return None
        config = self._config
        if self.tries("communication") and self.choice.plans:
            for each in (job, *replicas):
                each.go_by_plan_from(None)
        return Bench(config, job, replicas, begun, *pace(job, config))

    def _finding(self, what: str, bench: Bench | None, search: Search) -> Finding:
        if what == "rate":
            return _rate(self._config)
        if bench is None:
            return nothing(self._why_not or "")
        if what == "communication":
            return communication(bench, self.choice)
        return batch(bench) if what == "batch" else overlapped(bench, search)


def _why_not(config: Config, first: bool) -> str | None:
    """Why nothing is to be tried, if so."""
    if not first:
        return "the run was interrupted before this was decided"
    return "the run is over before measuring pays" if too_short(config) else None


def too_short(config: Config) -> bool:
    """Whether even the first trial steps would take more of the run than may be spent without a gain."""
    return config.decide.seconds is None and SHARE * all_steps(config) < _PACE_STEPS


def _rate(config: Config) -> Finding:
    name, steps = config.lr["name"], cost_of(config).probe_steps
    if not steps:
        return nothing(f"lr={name} gives it")
    words = f"lr={name} finds it while training, in at most {steps:,} steps more"
    return Finding({}, {"probe_steps": steps}, reason=words)


def _effective(finding: Finding, config: Config) -> Finding:
    """Without what is so already."""
    chosen = {key: value for key, value in finding.chosen.items() if _given(config, key) != value}
    return replace(finding, chosen=chosen)


def _given(config: Config, key: str) -> Any:
    values: Any = config.to_json()
    for part in key.split("."):
        values = values.get(part) if isinstance(values, Mapping) else None
    return values
