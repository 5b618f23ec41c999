"""How long a run will be, in steps one after another, where several copies of a job share its probes."""

import math

from orchestrator.learning_rate.dimensions import batch_factor
from orchestrator.learning_rate.policy import Policy, Probe, Probed, Series, Trained

LOSS = 1.0  # of every step: then no rate is better than another, and no trial ends early


def steps_in_turn(policy: Policy, copies: int) -> int:
    """Carries the policy through on a flat loss; what really happens takes at most as long."""
    total = 0
    while (action := policy.ask()) is not None:
        series = _flat(action.steps, action.validate_every)
        if isinstance(action, Probe):
            *_, settings = next(action.asked())  # those of a probe take batches of one size
            total += math.ceil(len(action.candidates) / copies) * round(action.steps * batch_factor(settings))
            policy.tell(Probed((series,) * len(action.candidates)))
        else:
            total += action.steps
            policy.tell(Trained(series))
    return total


def _flat(steps: int, validate_every: int | None) -> Series:
    places = range(validate_every, steps + 1, validate_every) if validate_every else ()
    return Series((LOSS,) * steps, tuple((place, LOSS) for place in places))
