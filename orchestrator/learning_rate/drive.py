"""Any policy in a plain training loop of one process: no cluster, no orchestrator.

The objects handed over follow torch's protocols (`state_dict`, `load_state_dict`, `param_groups`); torch itself is not
needed here. Probes take fresh batches of the loop's own data, unless the data's position is among the states handed
over; then all rates see the same batches, and are compared with less noise.
"""

import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from orchestrator.errors import UserError
from orchestrator.learning_rate.dimensions import Settings
from orchestrator.learning_rate.policy import Finding, Policy, Probe, Probed, Series, Train, Trained
from orchestrator.learning_rate.schedules import Schedule


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

    `step` takes one optimizer step and returns its loss; the rate is set before each call. `states` is what a probe
    changes besides the optimizer, above all the model. `validate` returns the loss on held-out data. An optimizer that
    averages its iterates (it has `train` and `eval`, as Schedule-Free ones do) is put into the right mode each time,
    and is left in `eval`: the model then holds the average. `use` is told the settings besides the rate that the steps
    from now on take, as factors of the loop's own; needed where the policy searches such settings, else UserError.
    """
    history = History()
    loop = _Loop(step, optimizer, states, validate, use, history)
    _set_mode(optimizer, "train")
    while (action := policy.ask()) is not None:
        outcome = Probed(loop.probe(action)) if isinstance(action, Probe) else Trained(loop.train(action))
        history.findings += policy.tell(outcome)
    _set_mode(optimizer, "eval")
    return history


@dataclass
class _Kept:
    """The end of an arm, and what led there."""

    states: list[Any]
    rates: list[float]
    losses: list[float]


@dataclass
class _Loop:
    step: Callable[[], float]
    optimizer: Optimizer
    states: Sequence[Stateful]
    validate: Callable[[], float] | None
    use: Callable[[Settings], object] | None
    history: History
    arms: dict[str, _Kept] = field(default_factory=dict)

    def train(self, action: Train) -> Series:
        if action.take_up is not None:
            self._take_up(self.arms[action.take_up])
        self._use(action.settings)
        series = self._run(action.schedule, action.first_step, action.steps, action.validate_every or action.steps)
        self.history.rates += _rates(action.schedule, action.first_step, series)
        self.history.losses += series.train
        self.history.validation += [(action.first_step + done, loss) for done, loss in series.validation]
        return series

    def probe(self, action: Probe) -> tuple[Series, ...]:
        """Try each candidate, and come back to the present state after each."""
        start = self._kept_states()
        self.arms = {name: kept for name, kept in self.arms.items() if name in {*action.arms, *action.needed}}
        tried = []
        for name, candidate, settings in action.asked():
            tried.append(self._try(name, candidate, settings, action))
            self._go_to(start)
        return tuple(tried)

    def _try(self, name: str | None, candidate: Schedule, settings: Settings, action: Probe) -> Series:
        before = self.arms[name] if name is not None and action.taken else _Kept([], [], [])
        if action.taken:
            self._go_to(before.states)
        self._use(settings)
        stop_above = sys.float_info.max if action.stop_above is None else action.stop_above
        series = self._run(candidate, action.taken, action.steps, action.validate_every, stop_above)
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
    ) -> Series:
        losses: list[float] = []
        validation: list[tuple[int, float]] = []
        for done in range(1, steps + 1):
            for group in self.optimizer.param_groups:
                group["lr"] = schedule.rate(first_step + done - 1)
            losses.append(float(self.step()))
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
