"""How many samples a worker takes at once: those with which the whole run, brought equally far, is over soonest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import harmonic_mean
from typing import Any

from comm_plans.sizes import shown_seconds
from orchestrator.decide.bench import Bench, cost_of, pace, trial_steps
from orchestrator.decide.finding import Finding, nothing
from orchestrator.decide.progress import PART, SEEN, mean_noise, with_batch
from orchestrator.decide.recorded import changed
from orchestrator.errors import UserError
from orchestrator.learning_rate import make_policy
from orchestrator.learning_rate.policy import Cost, Probe, Train

LARGEST = 8  # times the batch that is given
PAYS = 1.1  # less gain is not worth another training than the given one
RISE = PAYS ** (1 / 3)  # of samples a second with a doubling; with less the next ones are not worth a try
BATCHES = 4  # of each rank, from which the noise scale is estimated each time
FEWEST_TRAINED, MOST_TRAINED = 8, 100  # steps before it is: the PART-th part of the run, within limits
FEWEST_STEPS = 200  # of a run: with fewer, no rate is found
EPOCH = 4  # steps, at least, that go through the data once
MEMORY = 0.8  # of what is free, that may be taken
_TOO_SHORT = "to see what other batches are worth would take too much of so short a run"
_BEGINNING = "before trial steps"


@dataclass(frozen=True)
class _Better:
    """A batch, and the run with it."""

    batch_size: int
    chosen: dict[str, Any]
    cost: Cost
    gain: float


def batch(bench: Bench) -> Finding:
    """The batch, taken by all copies."""
    if "batch_size" in (bench.config.lr.get("also") or ()):
        return nothing("lr.also searches it while training")
    given = bench.config.batch_size
    if not _fits(bench, 2 * given):
        return nothing("there are too few data, or there is too little memory, for twice as many samples")
    if not bench.budget.allows(_trial_cost(2 * bench.seconds) + _noise_cost(bench), _saving(bench, LARGEST)):
        return nothing(_TOO_SHORT)
    seconds = {given: bench.seconds, **dict(_trials(bench))}
    if len(seconds) == 1:
        return nothing(_TOO_SHORT)
    evidence = {f"step_seconds_{size}": each for size, each in sorted(seconds.items())}
    speedup = max(size / each for size, each in seconds.items()) * bench.seconds / given
    bench.job.use_batch(given)
    if speedup < PAYS:
        return Finding({}, evidence, 1.0, f"another batch takes at most {speedup:.2f} times as many samples a second")
    if not bench.budget.allows(_noise_cost(bench), _saving(bench, speedup)):
        return Finding({}, evidence, 1.0, _TOO_SHORT)
    first, early = _noise(bench)
    noise = mean_noise(first, early)
    evidence |= {"noise_scale_at_first": first, "noise_scale_early": early, "noise_scale": noise}
    runs = [run for run in _runs(bench, seconds, noise) if run.gain >= PAYS]
    words = f"the noise scale is {first:.3g} samples at first, {early:.3g} early, by forecast {noise:.3g} on average"
    if not runs:
        return Finding({}, evidence, 1.0, f"{words}: larger steps bring less than they take longer")
    best = _smallest_of_the_best(runs)
    return _taken(bench, best, seconds[best.batch_size], evidence, words)


def _smallest_of_the_best(runs: Sequence[_Better]) -> _Better:
    """A larger batch has to be better by as much as pays: noise grows, so that it is behind for most of the run."""
    most = max(run.gain for run in runs)
    return min((run for run in runs if run.gain * PAYS >= most), key=lambda run: run.batch_size)


def _taken(bench: Bench, best: _Better, seconds: float, evidence: dict[str, float], words: str) -> Finding:
    for job in bench.jobs:
        job.use_batch(best.batch_size)
    reason = (
        f"{words}: {best.chosen['steps']:,} steps of {shown_seconds(seconds)} come as far as "
        f"{bench.config.steps:,} of {shown_seconds(bench.seconds)}"
    )
    evidence |= {"train_steps": best.cost.train_steps, "probe_steps": best.cost.probe_steps}
    bench.seconds, bench.exposed = pace(bench.job, bench.config)  # steps that take longer hide more by themselves
    return Finding(best.chosen, evidence, best.gain, reason)


def _trials(bench: Bench) -> Iterator[tuple[int, float]]:
    """Batches and the seconds of a step with them: larger ones while samples a second rise, else a smaller one."""
    size, best = bench.config.batch_size, bench.seconds
    while size < LARGEST * bench.config.batch_size:
        size *= 2
        if not _fits(bench, size) or not bench.budget.allows(_trial_cost(2 * best), _saving(bench, 2)):
            return
        seconds = _tried(bench, size)
        yield size, seconds
        if seconds > 2 * best / RISE:
            break
        best = seconds
    if size == 2 * bench.config.batch_size and seconds > 2 * PAYS * bench.seconds and bench.config.batch_size > 1:
        yield size // 4, _tried(bench, size // 4)


def _tried(bench: Bench, size: int) -> float:
    bench.job.use_batch(size)
    return bench.step_seconds()


def _fits(bench: Bench, size: int) -> bool:
    """Whether there are data for it, and memory: half the batch, tried before, took at most all that is held."""
    config, (held, free) = bench.config, bench.job.memory()
    samples = size * config.accumulate * config.cluster.workers
    sharing = 1 if config.cluster.gpus_per_worker else config.cluster.workers
    return EPOCH * samples <= bench.job.training_samples() and held * sharing <= MEMORY * free


def _saving(bench: Bench, speedup: float) -> float:
    """Seconds that a batch saves at best with which so many times as many samples a second are taken."""
    return bench.run_seconds * (1 - min(1.0, max(1 / speedup, FEWEST_STEPS / bench.config.steps)))


def _trial_cost(seconds: float) -> float:
    """Of a batch with which a step is expected to take so many seconds."""
    return seconds * trial_steps(seconds)


def _noise_cost(bench: Bench) -> float:
    return (1 + len(SEEN)) * BATCHES * bench.alone + _trained_steps(bench) * bench.seconds


def _trained_steps(bench: Bench) -> int:
    return min(max(FEWEST_TRAINED, bench.config.steps // PART), MOST_TRAINED)


def _noise(bench: Bench) -> tuple[float, float]:
    """The noise scale at the beginning, and after some steps as the policy begins with them.

    Of several looks the harmonic mean: what varies is the gradient below the fraction.
    """
    job, config = bench.job, bench.config
    first = job.noise_scale(BATCHES)
    action = make_policy(config.lr, config.steps, config.seed).ask()
    assert isinstance(action, Probe | Train)
    schedule = action.candidates[0] if isinstance(action, Probe) else action.schedule
    job.keep(_BEGINNING)
    looks = []
    for begin, end in pairwise([0, *(round(part * _trained_steps(bench)) for part in SEEN)]):
        job.train([schedule.rate(step) for step in range(begin, end)])
        looks.append(job.noise_scale(BATCHES))
    job.rewind(_BEGINNING)
    job.forget(_BEGINNING)
    return first, harmonic_mean(looks)


def _runs(bench: Bench, seconds: dict[int, float], noise: float) -> Iterator[_Better]:
    """The run with each batch but the given one, as far as its policy can do with its steps."""
    for size, each in seconds.items():
        chosen = with_batch(bench.config, size, noise)
        if size == bench.config.batch_size or chosen["steps"] < FEWEST_STEPS:
            continue
        try:
            cost = cost_of(changed(bench.config, chosen))
        except UserError:
            continue
        yield _Better(size, chosen, cost, bench.run_seconds / ((cost.train_steps + cost.probe_steps) * each))
