"""Any policy in a plain training loop of one process: no cluster, no orchestrator.

The objects handed over follow torch's protocols (`state_dict`, `load_state_dict`, `param_groups`); torch itself is not
needed here. Probes take fresh batches of the loop's own data, as in the published AutoLRS.
"""

import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

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
) -> History:
    """Train until the policy's budget is spent.

    `step` takes one optimizer step and returns its loss; the rate is set before each call. `states` is what a probe
    changes besides the optimizer, above all the model. `validate` returns the loss on held-out data.
    """
    loop = _Loop(step, optimizer, states, validate)
    history = History()
    while (action := policy.ask()) is not None:
        if isinstance(action, Probe):
            history.findings += policy.tell(Probed(loop.probe(action)))
        else:
            series = loop.train(action)
            history.rates += [action.schedule.rate(action.first_step + i) for i in range(len(series.train))]
            history.losses += series.train
            history.validation += [(action.first_step + done, loss) for done, loss in series.validation]
            history.findings += policy.tell(Trained(series))
    return history


@dataclass(frozen=True)
class _Loop:
    step: Callable[[], float]
    optimizer: Optimizer
    states: Sequence[Stateful]
    validate: Callable[[], float] | None

    def train(self, action: Train) -> Series:
        return self._run(action.schedule, action.first_step, action.steps, action.validate_every or action.steps)

    def probe(self, action: Probe) -> tuple[Series, ...]:
        """Try each candidate, and come back to the present state after each."""
        parts = (self.optimizer, *self.states)
        kept = [copy.deepcopy(part.state_dict()) for part in parts]
        stop_above = sys.float_info.max if action.stop_above is None else action.stop_above
        tried = []
        for candidate in action.candidates:
            tried.append(self._run(candidate, 0, action.steps, action.validate_every, stop_above))
            for part, state in zip(parts, kept, strict=True):
                part.load_state_dict(copy.deepcopy(state))  # an optimizer would go on to write into what it loads
        return tuple(tried)

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
                validation.append((done, float(self.validate())))
        return Series(tuple(losses), tuple(validation))
