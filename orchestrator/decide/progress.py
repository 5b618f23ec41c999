"""How far steps of different batches bring a training, by the gradient noise scale, and what that makes of its rates.

With a batch of B samples a step brings 1 / (1 + noise / B) of what it would with all samples (McCandlish et al., arXiv
1812.06162, equation 2.7 and section 2.3). Rates then grow with the batch: in proportion for SGD (Goyal et al., arXiv
1706.02677, section 2.1), with its square root for Adam and its kin (Malladi et al., arXiv 2205.10287, section 5).
"""

from math import ceil
from statistics import fmean
from typing import Any

from orchestrator.config import Config

_POWERS = {"SGD": 1.0, "SGDScheduleFree": 1.0, "DAdaptAdam": 0.0, "Prodigy": 0.0}  # the last find their own step size
_ADAPTIVE = 0.5
PART = 20  # of a run, in which the noise scale is seen
SEEN = (0.6, 0.7, 0.8, 0.9, 1.0)  # of this part: several times, for it varies by three times from step to step
_RATES = ("rate", "known_lr", "near")  # of the lr group


def mean_noise(first: float, early: float) -> float:
    """The noise scale to expect over a run, of which so much was seen at its first step and in a PART-th of it.

    It grows while a model trains (section 4.1): it is taken to grow on as it did, in proportion to the steps, so that
    the mean is what it will be half way. Where it did not grow early, it is not expected to.
    """
    half = PART / 2 / fmean(SEEN)  # of the run, in units of the steps after which it was seen
    return early + (half - 1) * max(early - first, 0.0)


def steps_needed(steps: int, samples: int, other: int, noise: float) -> int:
    """Steps of `other` samples that bring as far as `steps` of so many `samples`.

    Fewer samples are credited with nothing but their number: were noise to grow more than is expected, they would
    bring less.
    """
    if other < samples:
        return ceil(steps * samples / other)
    return ceil(steps * ((1 + noise / other) / (1 + noise / samples)))


def with_batch(config: Config, batch_size: int, noise: float) -> dict[str, Any]:
    """The keys that another batch changes, so that the run comes as far as it would have."""
    step = config.accumulate * config.cluster.workers  # samples are these times the batch
    steps = steps_needed(config.steps, config.batch_size * step, batch_size * step, noise)
    chosen: dict[str, Any] = {"batch_size": batch_size, "steps": steps}
    factor = (batch_size / config.batch_size) ** power_of(str(config.optimizer["_target_"]))
    chosen |= {f"lr.{name}": config.lr[name] * factor for name in _RATES if config.lr.get(name) is not None}
    if (every := config.lr.get("validate_every")) is not None:
        chosen["lr.validate_every"] = max(1, round(every * steps / config.steps))
    return chosen


def power_of(optimizer: str) -> float:
    """With which power of the batch the rate of an optimizer, by its class, grows."""
    return _POWERS.get(optimizer.rsplit(".", 1)[-1], _ADAPTIVE)
