"""What can be searched besides the rate, as factors of what is configured, which suit any optimizer.

A batch of another size is compared after as many samples: half the batch takes twice the steps.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from orchestrator.learning_rate.checks import require

Settings = Mapping[str, float]  # name → factor; what is not named stays as it is configured
AS_CONFIGURED: Settings = MappingProxyType({})

FACTORS = {
    "weight_decay": (0.1, 10.0),
    "momentum": (0.5, 2.0),  # of 1 − momentum (1 − β₁ of Adam and its kin): how fast gradients are forgotten
    "batch_size": (0.5, 2.0),
}
SHARE = 0.05  # of the steps, that one of them may add to the search at most


def batch_factor(settings: Settings) -> float:
    """Samples a step, as a multiple of those configured."""
    return settings.get("batch_size", 1.0)


def steps_for(samples: int, settings: Settings) -> int:
    """Steps that take as many samples as `samples` steps with the batch that is configured."""
    return round(samples / batch_factor(settings))


def least_steps(name: str, least_rung: int) -> int:
    """Steps of a run from which on each trial can take `least_rung` steps, and all together stay within the share."""
    longest = least_rung * (max(FACTORS[name]) if name == "batch_size" else 1)
    return round(len(FACTORS[name]) * longest / SHARE)


def check_dimensions(also: Iterable[str]) -> None:
    """UserError where a name is none of those above, or stands there twice."""
    names = list(also)
    for name in names:
        require(name in FACTORS, f"lr.also has {name}, which cannot be searched: it takes {', '.join(FACTORS)}.")
        require(names.count(name) == 1, f"lr.also has {name} twice: name it once.")
