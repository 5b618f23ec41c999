"""AutoLRS on an averaging optimizer: one learning rate for the whole run, found at its beginning.

As in AutoLRS (arXiv 2105.10762) rates are tried from one state, Bayesian optimisation proposes them, and an exponential
forecast ends the hopeless. Unlike there, the base is Schedule-Free (arXiv 2405.15682), whose averaged iterate needs no
decay and shows early what a rate is worth; probes are not thrown away but go on in doubling rungs (successive halving,
arXiv 1502.07943), so that the winner's steps are the run's own first. Then the level eases off, the faster the more
noise is in the iterates.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from orchestrator.learning_rate.arms import Arm, Field, end_those_behind, end_those_no_better, leading, runaway
from orchestrator.learning_rate.checks import require
from orchestrator.learning_rate.decision import GENTLE, exponent, forecast_of, pick, reason, require_finite_start
from orchestrator.learning_rate.dimensions import FACTORS, Settings, batch_factor, steps_for
from orchestrator.learning_rate.policy import (
    Action,
    Choice,
    Cost,
    Finding,
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
from orchestrator.learning_rate.rungs import (
    AutoLRSOptions,
    Rung,
    SearchPlan,
    mid_points,
    plan_search,
    warmup_steps,
)
from orchestrator.learning_rate.schedules import InversePower, Linear, Schedule
from orchestrator.learning_rate.staged import bounds, usual_validate_every

PIECES = 8  # of the training, with a snapshot after each
SEARCHES = 3  # each a whole interval lower than the one before, where every rate diverged
HELD = 10  # for this part of the run, at least, the level stays what it is
STAGE = 1


@dataclass
class _State:
    """Where a run stands; everything is a plain JSON value."""

    low: float
    high: float
    end: int  # real steps of the whole run
    level: float | None = None  # where the level stands
    exponent: float = GENTLE  # with which it falls
    begin: int = 0  # real steps done when the training at the level begins: the winner's
    step: int = 0  # real steps done
    rung: int = 0
    searches: int = 1
    probe_steps: int = 0
    active: list[str] = field(default_factory=list)  # arms that the present rung takes on
    arms: list[Arm] = field(default_factory=list)
    winner: str | None = None  # until its end has been taken up
    settings: dict[str, float] = field(default_factory=dict)  # the winner's


class AutoLRS(Policy):
    """Searches one level by arms that go on, and trains with the winner. Deterministic; `seed` is not used."""

    def __init__(self, steps: int, seed: int = 0, options: AutoLRSOptions | None = None) -> None:
        self._options = options or AutoLRSOptions()
        self._options.check(steps)
        self._steps = steps
        also = self._options.searched_also(steps)
        self._plan = plan_search(steps, also, self._options.doublings, self._options.narrow)
        self._validate_every = self._options.validate_every or usual_validate_every(steps)
        self._state = _State(*self._options.interval(), end=steps, level=self._options.known_level(steps))
        if self._state.level is None:
            self._enter_rung()

    def ask(self) -> Action | None:
        state = self._state
        if state.level is None:
            return self._probe()
        if state.step == state.end:
            return None
        soft = steps_for(self._steps, state.settings)  # its pieces, so that a hard budget only ends earlier
        edges = (min(state.begin + edge, state.end) for edge in bounds(soft - state.begin, PIECES))
        steps = next(edge for edge in edges if edge > state.step) - state.step
        schedule = self._course(state.level)
        every = max(1, steps_for(self._validate_every, state.settings))
        return Train(STAGE, schedule, state.step, steps, every, state.winner, state.settings)

    def tell(self, outcome: Outcome) -> tuple[Finding, ...]:
        action, state = self.ask(), self._state
        match action, outcome:
            case Probe(), Probed(series=series) if len(series) == len(action.candidates):
                for arm, seen in zip(self._next, series, strict=True):
                    arm.take(seen, action.steps, self._rung.until, self._rung.scored)
                    state.probe_steps += round(len(seen.train) * batch_factor(arm.settings))
                return () if self._waiting else tuple(self._close_rung())
            case Train(), Trained(series=series):
                state.step += action.steps
                state.winner = None
                self._ease(action.schedule, series)
                return ()
        raise ValueError(f"A {type(outcome).__name__} was told that does not fit what was asked for: {action}.")

    def cost(self) -> Cost:
        plan = self._plan if self._options.known_lr is None else None
        lost, also = (plan.lost_steps, plan.also_steps) if plan else (0, 0)
        return Cost(1, self._steps - (lost if self._options.budget == "hard" else 0), lost, also)

    def state(self) -> Json:
        return dataclasses.asdict(self._state)

    def load_state(self, state: Json) -> None:
        self._state = _State(**{**state, "arms": [Arm(**values) for values in state["arms"]]})

    @property
    def _search_plan(self) -> SearchPlan:
        assert self._plan is not None
        return self._plan

    @property
    def _rungs(self) -> tuple[Rung, ...]:
        return self._search_plan.rungs

    @property
    def _rung(self) -> Rung:
        return self._rungs[self._state.rung]

    @property
    def _active(self) -> list[Arm]:
        return [arm for arm in self._state.arms if arm.name in self._state.active]

    @property
    def _waiting(self) -> list[Arm]:
        """Those of them that have not come as far yet as the rung goes."""
        return [arm for arm in self._active if arm.ended is None and arm.done < self._rung.until]

    @property
    def _next(self) -> list[Arm]:
        """Those of them that go on together, for as many steps."""
        sizes = [batch_factor(arm.settings) for arm in self._waiting]
        return [arm for arm, size in zip(self._waiting, sizes, strict=True) if size == sizes[0]]

    @property
    def _alive(self) -> list[Arm]:
        return [arm for arm in self._state.arms if arm.ended is None]

    @property
    def _leaders(self) -> list[Arm]:
        """The arms that came furthest, best first."""
        return leading(self._alive)

    @property
    def _field(self) -> Field:
        low, high = self._state.low, self._state.high
        tried = [arm for arm in self._state.arms if low <= arm.rate <= high and not arm.settings]
        return Field(tried, low, high, self._search_plan.first)

    def _probe(self) -> Probe:
        rung, arms = self._rung, self._next
        taken = len(arms[0].losses)
        steps = steps_for(rung.until, arms[0].settings) - taken
        others = [] if rung.arms == "leaders" else leading(arm for arm in self._alive if arm not in self._active)
        return Probe(
            STAGE,
            tuple(self._schedule(arm.rate, arm.settings) for arm in arms),
            steps,
            "search",
            validate_every=steps if rung.scored else None,
            stop_above=runaway(arms[0].losses[0]) if taken else None,
            arms=tuple(arm.name for arm in arms),
            taken=taken,
            needed=tuple(arm.name for arm in (*others, *self._active)),
            settings=tuple(arm.settings for arm in arms),
        )

    def _schedule(self, level: float, settings: Settings) -> Linear:
        """Warm-up and level."""
        return Linear(level, self._state.end, steps_for(warmup_steps(self._steps), settings))

    def _course(self, level: float) -> Schedule:
        """The schedule once the search is over: a level that eases off after a tenth of the run, or decays at once."""
        state = self._state
        held = self._schedule(level, state.settings)
        if self._options.finish == "decay":
            return dataclasses.replace(held, decay=state.end - state.begin)
        begin = max(state.step, steps_for(self._steps // HELD, state.settings), 1)
        return InversePower(level, held.warmup, begin, state.exponent)

    def _ease(self, schedule: Schedule, series: Series) -> None:
        """Note how far the level has fallen, and how fast it falls from now on."""
        if isinstance(schedule, InversePower):
            self._state.level = dataclasses.replace(schedule, warmup=0).rate(self._state.step)
            self._state.exponent = exponent(series)

    def _enter_rung(self) -> None:
        """See who goes on in the present rung; the first of each kind adds its arms."""
        state, rung = self._state, self._rung
        joining = state.rung == 0 or self._rungs[state.rung - 1].arms != rung.arms
        if joining and rung.arms == "grid":
            self._add(mid_points(state.low, state.high, self._options.order)[: self._search_plan.grid])
        elif joining and rung.arms == "proposal":
            self._add([self._field.propose()])
        elif rung.arms in FACTORS and self._leaders:
            self._vary(self._leaders[0], rung.arms)
        contenders = self._leaders if rung.arms == "leaders" else self._alive
        state.active = [arm.name for arm in contenders if arm.done < rung.until]

    def _add(self, rates: Sequence[float]) -> None:
        for rate in rates:
            self._state.arms.append(Arm(str(len(self._state.arms) + 1), rate))

    def _vary(self, best: Arm, name: str) -> None:
        """Add the best arm so far with one of its settings changed."""
        for factor in FACTORS[name]:
            number = len(self._state.arms) + 1
            self._state.arms.append(Arm(str(number), best.rate, settings={**best.settings, name: factor}))

    def _close_rung(self) -> Iterator[Finding]:
        state, rung = self._state, self._rung
        if not rung.scored:
            standing = [arm for arm in self._active if arm.ended is None]
            end_those_behind(standing, next(iter(self._leaders), None), rung.until, self._field.first)
        if rung.arms in FACTORS:
            end_those_no_better(self._active, self._alive, self._options.usual_band())
        state.active = []
        while not state.active:
            state.rung += 1
            if not self._alive:
                yield self._search_lower()
            elif state.rung == len(self._rungs):
                yield from self._choose()
                return
            self._enter_rung()

    def _search_lower(self) -> RangeFound:
        """Every rate diverged: go on below them all."""
        state = self._state
        low, high = state.low, state.high
        require_finite_start(state.arms)
        lost = f"every rate from {low:.2g} up makes the loss run away: check the data, the loss and its scale."
        require(state.searches < SEARCHES, lost)
        state.low, state.high, state.rung, state.searches = low * low / high, low, 0, state.searches + 1
        why = f"every rate tried from {low:.2g} to {high:.2g} diverged, so lower ones are searched"
        return RangeFound(state.low, state.high, why)

    def _choose(self) -> Iterator[Finding]:
        state = self._state
        winner = pick(self._leaders, self._options.usual_band(), self._options.prefer)
        state.level, state.winner, state.settings = winner.rate, winner.name, winner.settings
        state.begin = state.step = len(winner.losses)
        lost = state.probe_steps - winner.done if self._options.budget == "hard" else 0
        state.end = max(steps_for(self._steps - lost, winner.settings), state.begin + 1)
        for arm in state.arms:
            horizon = steps_for(self._steps, arm.settings)
            yield forecast_of(STAGE, arm, horizon, [each.losses for each in state.arms])
        why = reason(winner, state.arms, self._field.first)
        yield Choice(STAGE, winner.rate, why, state.end, self._field.surrogate(), winner.settings)
