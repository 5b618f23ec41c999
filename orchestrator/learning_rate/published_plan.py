"""The stages of the published AutoLRS: how long each trains, how long its probes are, which loss judges them.

The published stages double from `stage_steps` to `max_stage_steps` (1000 to 8000: probes of 100, 200, 400, 800 steps).
That needs some 30 000 steps before validation losses are used at all, so that stage lengths follow from the step
budget unless they are given.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from orchestrator.learning_rate.checks import require, require_budget, require_positive, require_share
from orchestrator.learning_rate.interval import WIDTH
from orchestrator.learning_rate.search import FILLING
from orchestrator.learning_rate.staged import bounds

MOST_STAGES = 12
LEAST_PROBE = 20  # steps; a run too short for such probes has fewer stages


@dataclass(frozen=True, kw_only=True)
class PublishedOptions:
    """Parameters of the published AutoLRS; the defaults are the published ones where the paper or its code has them.

    min_lr, max_lr: the interval searched; a range test finds it unless given (max_lr alone: from max_lr/1000).
    probes: rates tried a stage. probe_share: length of a probe as a share of its stage; probes × probe_share is the
    search's cost as a multiple of the training's. stages: number of equal stages. stage_steps, max_stage_steps: the
    published form instead, doubling. kappa: weight of exploration; from 1000 on the rates fill the interval.
    rank_by: what probes are compared by, their "forecast" as published, or the loss they "reached", which chose better
    rates on nearly every set of recorded curves (docs/experiments.md). validation_points: validations a probe once
    validation losses are used (at most twice as many in short probes); 0 keeps to training losses. warmup: share of the
    run that rises linearly to the middle of the interval before the first stage. validate_every: steps between
    validations while training, about twenty a run unless given.
    """

    min_lr: float | None = None
    max_lr: float | None = None
    probes: int = 10
    probe_share: float = 0.1
    stages: int | None = None
    stage_steps: int | None = None
    max_stage_steps: int | None = None
    kappa: float = FILLING
    rank_by: str = "forecast"
    validation_points: int = 16
    warmup: float = 0.0
    range_test_steps: int | None = None
    validate_every: int | None = None

    def check(self, steps: int) -> None:
        """UserError where a parameter makes no sense."""
        require_budget(steps, self.stages)
        require_positive(min_lr=self.min_lr, max_lr=self.max_lr, probes=self.probes, probe_share=self.probe_share)
        require_positive(stage_steps=self.stage_steps, max_stage_steps=self.max_stage_steps, kappa=self.kappa)
        require_positive(range_test_steps=self.range_test_steps, validate_every=self.validate_every)
        require_share(warmup=self.warmup)
        require(self.probe_share <= 1, f"lr.probe_share is {self.probe_share}: set it to 1 or less.")
        require(self.validation_points >= 0, f"lr.validation_points is {self.validation_points}: set it to 0 or more.")
        wanted = "set it to forecast or reached."
        require(self.rank_by in ("forecast", "reached"), f"lr.rank_by is {self.rank_by}: {wanted}")
        self._check_interval()
        self._check_lengths()

    def interval(self) -> list[float] | None:
        """Lowest and highest rate, where they are given."""
        if self.max_lr is None:
            return None
        return [self.min_lr or self.max_lr / WIDTH, self.max_lr]

    def _check_interval(self) -> None:
        low, high = self.min_lr, self.max_lr
        if low is not None and high is None:
            require(False, f"lr.min_lr is {low}, but lr.max_lr is not set: set both, lr.max_lr alone, or neither.")
        if low is not None and high is not None:
            require(
                low < high, f"lr.min_lr is {low}, not below lr.max_lr = {high}: lower lr.min_lr or raise lr.max_lr."
            )

    def _check_lengths(self) -> None:
        first, longest = self.stage_steps, self.max_stage_steps
        both = "lr.stages and lr.stage_steps are both set: set one of them to null."
        require(self.stages is None or first is None, both)
        require(longest is None or first is not None, "lr.max_stage_steps is set without lr.stage_steps: set both.")
        if first is not None and longest is not None:
            require(first <= longest, f"lr.max_stage_steps is {longest}, below lr.stage_steps = {first}: raise it.")


@dataclass(frozen=True)
class Stage:
    """One stage: `probe_steps` for each probe, then `steps` of training from the run's step `first_step`."""

    number: int  # from 1
    first_step: int
    steps: int
    probe_steps: int
    validate_every: int | None  # in probes: None where training losses decide


def warmup_steps(options: PublishedOptions, steps: int) -> int:
    """Steps of the warm-up; at least one step is left to search for."""
    return min(int(options.warmup * steps), steps - 1)


def range_test_steps(options: PublishedOptions, steps: int) -> int:
    """Steps of the range test, 0 where the interval is given: a tenth of the run within 20 … 100, unless given."""
    if options.max_lr is not None:
        return 0
    return options.range_test_steps or min(max(steps // 10, 20), 100)


def plan_stages(options: PublishedOptions, steps: int) -> tuple[Stage, ...]:
    """The stages of a run. Their steps and the warm-up's add up to `steps` exactly."""
    begin = warmup_steps(options, steps)
    lengths = list(_lengths(options, steps - begin))
    longest = options.max_stage_steps or options.stage_steps or min(lengths)
    stages: list[Stage] = []
    by_validation = False
    for number, length in enumerate(lengths, start=1):
        probe = max(1, round(options.probe_share * length))
        every = _validate_every(options, probe) if by_validation else None
        stages.append(Stage(number, begin, length, probe, every))
        begin += length
        by_validation = by_validation or length >= longest
    return tuple(stages)


def _lengths(options: PublishedOptions, steps: int) -> Iterator[int]:
    if options.stage_steps is not None:
        return _doubling(options.stage_steps, options.max_stage_steps or options.stage_steps, steps)
    affordable = int(steps * options.probe_share) // LEAST_PROBE
    stages = options.stages or min(max(affordable, 1), MOST_STAGES)
    edges = bounds(steps, min(stages, steps))
    return (end - begin for begin, end in pairwise(edges))


def _doubling(length: int, longest: int, steps: int) -> Iterator[int]:
    """Double up to the longest; a rest shorter than half a stage is added to the last one."""
    while steps > 0:
        take = length if steps - length >= length / 2 else steps
        yield take
        steps -= take
        length = min(2 * length, longest)


def _validate_every(options: PublishedOptions, probe_steps: int) -> int | None:
    if options.validation_points == 0:
        return None
    return max(1, probe_steps // options.validation_points)
