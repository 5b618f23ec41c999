"""AutoLRS as published (arXiv 2105.10762): the learning rate of each stage of a training, found while it trains.

At the start of a stage several rates are tried for a few steps each, from the same state. Each probe's losses are
extrapolated to the end of the stage, and the stage then trains at the rate whose forecast is lowest.

Where the published code fails, this differs: the forecaster (see `forecast`), probes that diverge are never chosen,
after a search whose probes all diverge the interval moves below them, searches are seeded, steps are exactly those
planned, and the state is JSON. Each stage searches anew, and probes see fresh batches or the same, as the driver likes.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.learning_rate.interval import Interval
from orchestrator.learning_rate.judge import Verdict, best, judge, objective
from orchestrator.learning_rate.policy import (
    Action,
    Choice,
    Cost,
    Finding,
    Forecast,
    Json,
    Outcome,
    Policy,
    Probe,
    Probed,
    RangeFound,
    Series,
    Train,
    Trained,
)
from orchestrator.learning_rate.published_plan import (
    PublishedOptions,
    Stage,
    plan_stages,
    range_test_steps,
    warmup_steps,
)
from orchestrator.learning_rate.range_test import HIGHEST, LOWEST, interval_from
from orchestrator.learning_rate.schedules import Constant, Exponential, Linear
from orchestrator.learning_rate.search import RateSearch
from orchestrator.learning_rate.staged import usual_validate_every


@dataclass
class _State:
    """Where a run stands; everything is a plain JSON value."""

    interval: list[float] | None  # low, high
    warmed: bool
    stages_done: int = 0
    verdicts: list[Json] = dataclasses.field(default_factory=list)  # on the present stage's probes so far
    rate: float | None = None  # chosen for the present stage
    bound: str | None = None  # on which the last chosen rate lay: low or high
    first_loss: float | None = None  # of the whole run


class PublishedAutoLRS(Policy):
    """Searches a rate for every stage. Stage 0 is the range test and the warm-up; searched stages count from 1."""

    def __init__(self, steps: int, seed: int = 0, options: PublishedOptions | None = None) -> None:
        self._options = options or PublishedOptions()
        self._options.check(steps)
        self._steps, self._seed = steps, seed
        self._warmup = warmup_steps(self._options, steps)
        self._stages = plan_stages(self._options, steps)
        self._validate_every = self._options.validate_every or usual_validate_every(steps)
        self._state = _State(self._options.interval(), warmed=self._warmup == 0)
        self._asked: Action | None = None

    def ask(self) -> Action | None:
        if self._asked is None:
            self._asked = self._next_action()
        return self._asked

    def tell(self, outcome: Outcome) -> tuple[Finding, ...]:
        action = self.ask()
        self._asked = None
        match action, outcome:
            case Probe(purpose="range_test"), Probed(series=(series,)):
                return self._settle_range(action, series)
            case Probe(), Probed(series=series) if len(series) == len(action.candidates):
                return self._judge(action, series)
            case Train(), Trained(series=series):
                return self._advance(series)
        raise ValueError(f"A {type(outcome).__name__} was told that does not fit what was asked for: {action}.")

    def cost(self) -> Cost:
        searched = sum(self._options.probes * stage.probe_steps for stage in self._stages)
        return Cost(len(self._stages), self._steps, searched + range_test_steps(self._options, self._steps))

    def state(self) -> Json:
        return dataclasses.asdict(self._state)

    def load_state(self, state: Json) -> None:
        self._state, self._asked = _State(**{**state, "verdicts": list(state["verdicts"])}), None

    def _next_action(self) -> Action | None:
        state = self._state
        if state.interval is None:
            steps = range_test_steps(self._options, self._steps)
            return Probe(0, (Exponential(LOWEST, HIGHEST, steps),), steps, "range_test")
        if not state.warmed:
            rise = Linear(self._interval.middle, self._warmup, self._warmup)
            return Train(0, rise, 0, self._warmup, self._validate_every)
        if state.stages_done == len(self._stages):
            return None
        stage = self._stage
        if state.rate is None:
            return Probe(stage.number, self._candidates(), stage.probe_steps, "search", stage.validate_every)
        return Train(stage.number, Constant(state.rate), stage.first_step, stage.steps, self._validate_every)

    @property
    def _stage(self) -> Stage:
        return self._stages[self._state.stages_done]

    @property
    def _interval(self) -> Interval:
        assert self._state.interval is not None
        return Interval(*self._state.interval)

    @property
    def _verdicts(self) -> list[Verdict]:
        return [Verdict(**values) for values in self._state.verdicts]

    def _search(self) -> RateSearch:
        """The stage's search, with what its probes told so far; another seed for each stage."""
        seed = int(np.random.SeedSequence([self._seed, self._stage.number]).generate_state(1)[0])
        search = RateSearch(self._interval.low, self._interval.high, seed, self._options.kappa)
        for verdict in self._verdicts:
            search.tell(verdict.rate, objective(verdict, self._options.rank_by))
        return search

    def _candidates(self) -> tuple[Constant, ...]:
        """All rates of the stage at once where their losses would not change them, else the next one."""
        search = self._search()
        count = self._options.probes - len(self._state.verdicts) if search.filling else 1
        return tuple(Constant(rate) for rate in search.ask(count))

    def _settle_range(self, action: Probe, series: Series) -> tuple[Finding, ...]:
        self._note_first(series)
        rates = [action.candidates[0].rate(step) for step in range(action.steps)]
        interval, diverged = interval_from(rates, series.train)
        if diverged:
            return (self._move(interval, f"in the range test the loss ran away at a rate of {2 * interval.high:.2g}"),)
        return (self._move(interval, f"in the range test no rate up to {interval.high:.2g} made the loss run away"),)

    def _judge(self, action: Probe, series: Sequence[Series]) -> tuple[Finding, ...]:
        stage = self._stage
        self._note_first(series[0])
        findings: list[Finding] = []
        for candidate, seen in zip(action.candidates, series, strict=True):
            verdict = judge(stage, candidate.rate(0), seen, self._state.first_loss)
            self._state.verdicts.append(dataclasses.asdict(verdict))
            findings.append(_forecast(stage, verdict))
        if len(self._state.verdicts) == self._options.probes:
            findings += self._choose()
        return tuple(findings)

    def _choose(self) -> list[Finding]:
        stage, verdicts, surrogate = self._stage, self._verdicts, self._search().curve()
        winner = best(verdicts, self._options.rank_by)
        if winner is None:
            return self._retreat()
        self._state.rate = winner.rate
        reason = self._reason(winner)
        return [Choice(stage.number, winner.rate, reason, stage.steps, surrogate), *self._watch_bounds(winner.rate)]

    def _reason(self, winner: Verdict) -> str:
        stage, verdicts = self._stage, self._verdicts
        reason = f"lowest of {len(verdicts)} forecasts: loss {winner.loss:.4g} after {stage.steps} steps"
        if self._options.rank_by == "reached":
            reason = f"lowest loss of {len(verdicts)} probes: {winner.reached:.4g} after {stage.probe_steps} steps"
        lost = sum(verdict.diverged for verdict in verdicts)
        return f"{reason}; {lost} diverged" if lost else reason

    def _retreat(self) -> list[Finding]:
        """Every probe diverged: train at a rate below them all, and search lower from now on."""
        stage, tried = self._stage, self._interval
        why = f"all {len(self._state.verdicts)} probes from {tried.low:.2g} to {tried.high:.2g} diverged"
        lower = self._move(tried.below(), f"{why}, so lower rates are searched from now on")
        self._state.rate, self._state.bound = lower.low, None
        return [Choice(stage.number, lower.low, f"{why}, this rate lies below them", stage.steps), lower]

    def _watch_bounds(self, rate: float) -> list[Finding]:
        """Two choices running on the same bound say that the interval lies wrong; one that was given is not left."""
        bound, before = self._interval.bound_of(rate), self._state.bound
        self._state.bound = bound
        if bound is None or bound != before:
            return []
        self._state.bound = None
        why = f"two stages running chose the {'lowest' if bound == 'low' else 'highest'} rate of the interval"
        if self._options.max_lr is not None:
            return [self._move(self._interval, f"{why}: give a wider one with lr.min_lr and lr.max_lr")]
        return [self._move(self._interval.extended(bound), f"{why}, so it is extended")]

    def _advance(self, series: Series) -> tuple[Finding, ...]:
        """The warm-up or a stage's training is done."""
        state, rate = self._state, self._state.rate
        self._note_first(series)
        if rate is None:
            state.warmed = True
            return ()
        state.stages_done, state.rate, state.verdicts = state.stages_done + 1, None, []
        if all(math.isfinite(loss) for loss in series.train):
            return ()
        state.bound = None
        return (self._move(self._interval.up_to(rate / 2), f"the training at {rate:.2g} diverged"),)

    def _move(self, interval: Interval, reason: str) -> RangeFound:
        self._state.interval = [interval.low, interval.high]
        return RangeFound(interval.low, interval.high, reason)

    def _note_first(self, series: Series) -> None:
        if self._state.first_loss is None and series.train and math.isfinite(series.train[0]):
            self._state.first_loss = series.train[0]


def _forecast(stage: Stage, verdict: Verdict) -> Forecast:
    found = (verdict.loss, stage.steps, verdict.quality, verdict.diverged, verdict.reached)
    return Forecast(stage.number, verdict.rate, *found)
