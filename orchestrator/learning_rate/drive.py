"""Any policy in a plain training loop of one process: no cluster, no orchestrator.

The objects handed over follow torch's protocols (`state_dict`, `load_state_dict`, `param_groups`); torch itself is not
needed here. Probes take fresh batches of the loop's own data, unless the data's position is among the states handed
over; then all rates see the same batches, and are compared with less noise.
"""

import copy
import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from orchestrator.errors import UserError
from orchestrator.learning_rate.dimensions import Settings
from orchestrator.learning_rate.policy import Finding, Outcome, Policy, Probe, Probed, Series, Train, Trained
from orchestrator.learning_rate.schedules import Schedule

Result = TypeVar("Result")
Steps = Generator[None, float | None, Result]


class Stateful(Protocol):
    """A model, a gradient scaler, an average of weights …"""

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state_dict: Any) -> Any: ...


class Optimizer(Stateful, Protocol):
    """Its learning rate is set in every parameter group."""

    param_groups: list[dict[str, Any]]


@dataclass
class History:
    """What happened: one rate and loss a real step, validations as (real steps done, loss), every finding."""

    rates: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    validation: list[tuple[int, float]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def drive(
    policy: Policy,
    step: Callable[[], float],
    optimizer: Optimizer,
    *states: Stateful,
    validate: Callable[[], float] | None = None,
    use: Callable[[Settings], object] | None = None,
) -> History:
    """Train until the policy's budget is spent.

    `step` takes one optimizer step and returns its loss; the rate is set before each call. The rest: see `Driver`.
    """
    driver = Driver(policy, optimizer, *states, validate=validate, use=use)
    while driver.going:
        driver.took_step(step())
    return driver.history


class Driver:
    """The same for a loop that somebody else runs: rate and state are always those that the next step is to begin with.

    `states` is what a probe changes besides the optimizer, above all the model. `validate` returns the loss on held-out
    data. An optimizer that averages its iterates (it has `train` and `eval`, as Schedule-Free ones do) is put into the
    right mode each time, and is left in `eval`: the model then holds the average. `use` is told the settings besides
    the rate that the steps from now on take, as factors of the loop's own; needed where the policy searches such
    settings, else UserError.
    """

    def __init__(
        self,
        policy: Policy,
        optimizer: Optimizer,
        *states: Stateful,
        validate: Callable[[], float] | None = None,
        use: Callable[[Settings], object] | None = None,
    ) -> None:
        self.history = History()
        self.going = True
        self._steps = _Loop(optimizer, states, validate, use, self.history).follow(policy)
        self._advance(None)

    def took_step(self, loss: float) -> None:
        """The optimizer has taken a step with this loss. Afterwards `going` says whether another one is wanted."""
        self._advance(loss)

    def _advance(self, loss: float | None) -> None:
        try:
            self._steps.send(loss)
        except StopIteration:
            self.going = False


@dataclass
class _Kept:
    """The end of an arm, and what led there."""

    states: list[Any]
    rates: list[float]
    losses: list[float]


@dataclass
class _Loop:
    """What comes between the steps. Its generators yield where a step is to be taken, and are sent its loss."""

    optimizer: Optimizer
    states: Sequence[Stateful]
    validate: Callable[[], float] | None
    use: Callable[[Settings], object] | None
    history: History
    arms: dict[str, _Kept] = field(default_factory=dict)

    def follow(self, policy: Policy) -> Steps[None]:
        _set_mode(self.optimizer, "train")
        while (action := policy.ask()) is not None:
            outcome: Outcome
            if isinstance(action, Probe):
                outcome = Probed((yield from self.probe(action)))
            else:
                outcome = Trained((yield from self.train(action)))
            self.history.findings += policy.tell(outcome)
        _set_mode(self.optimizer, "eval")

    def train(self, action: Train) -> Steps[Series]:
        if action.take_up is not None:
            self._take_up(self.arms[action.take_up])
        self._use(action.settings)
        every = action.validate_every or action.steps
        series = yield from self._run(action.schedule, action.first_step, action.steps, every)
        self.history.rates += _rates(action.schedule, action.first_step, series)
        self.history.losses += series.train
        self.history.validation += [(action.first_step + done, loss) for done, loss in series.validation]
        return series

    def probe(self, action: Probe) -> Steps[tuple[Series, ...]]:
        """Try each candidate, and come back to the present state after each."""
        start = self._kept_states()
        self.arms = {name: kept for name, kept in self.arms.items() if name in {*action.arms, *action.needed}}
        tried = []
        for name, candidate, settings in action.asked():
            tried.append((yield from self._try(name, candidate, settings, action)))
            self._go_to(start)
        return tuple(tried)

    def _try(self, name: str | None, candidate: Schedule, settings: Settings, action: Probe) -> Steps[Series]:
        before = self.arms[name] if name is not None and action.taken else _Kept([], [], [])
        if action.taken:
            self._go_to(before.states)
        self._use(settings)
        stop_above = sys.float_info.max if action.stop_above is None else action.stop_above
        series = yield from self._run(candidate, action.taken, action.steps, action.validate_every, stop_above)
        if name is not None:
            rates = before.rates + _rates(candidate, action.taken, series)
            self.arms[name] = _Kept(self._kept_states(), rates, [*before.losses, *series.train])
        return series

    def _use(self, settings: Settings) -> None:
        if self.use is not None:
            self.use(settings)
        elif settings:
            raise UserError(f"the policy searches {', '.join(settings)}: give drive a function `use` that sets it.")

    def _take_up(self, kept: _Kept) -> None:
        """What led to the arm's end is training from now on."""
        self._go_to(kept.states)
        self.history.rates += kept.rates
        self.history.losses += kept.losses
        self.arms = {}

    def _kept_states(self) -> list[Any]:
        return [copy.deepcopy(part.state_dict()) for part in (self.optimizer, *self.states)]

    def _go_to(self, kept: list[Any]) -> None:
        for part, state in zip((self.optimizer, *self.states), kept, strict=True):
            part.load_state_dict(copy.deepcopy(state))  # an optimizer would go on to write into what it loads

    def _validate(self, validate: Callable[[], float]) -> float:
        _set_mode(self.optimizer, "eval")
        loss = float(validate())
        _set_mode(self.optimizer, "train")
        return loss

    def _run(
        self, schedule: Schedule, first_step: int, steps: int, every: int | None, stop_above: float | None = None
    ) -> Steps[Series]:
        losses: list[float] = []
        validation: list[tuple[int, float]] = []
        for done in range(1, steps + 1):
            for group in self.optimizer.param_groups:
                group["lr"] = schedule.rate(first_step + done - 1)
            loss = yield
            assert loss is not None
            losses.append(float(loss))
            if stop_above is not None and not losses[-1] <= stop_above:
                break
            if self.validate is not None and every and (done % every == 0 or done == steps):
                validation.append((done, self._validate(self.validate)))
        return Series(tuple(losses), tuple(validation))


def _rates(schedule: Schedule, first_step: int, series: Series) -> list[float]:
    return [schedule.rate(first_step + step) for step in range(len(series.train))]


def _set_mode(optimizer: Optimizer, mode: str) -> None:
    """ "train" or "eval", of an optimizer that has these."""
    getattr(optimizer, mode, lambda: None)()
