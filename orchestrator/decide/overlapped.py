"""Whether to search a pipeline in which steps overlap: where what it can hide at most is worth its trial steps."""

from collections.abc import Callable

from orchestrator.config import Config
from orchestrator.decide.bench import Bench
from orchestrator.decide.finding import Finding, nothing
from orchestrator.decide.recorded import changed
from orchestrator.events import OverlapPlanned
from orchestrator.overlap_words import overlap_seconds, overlap_sentence

OFF, SEARCHED = ({"overlap.mode": mode} for mode in ("off", "searched"))
BACKWARD = 2 / 3  # of computation: all that hides communication where the optimizer needs all gradients at once
SEARCH_STEPS, SEARCH_SECONDS = 110, 4.0  # that a search takes: 107 and 127 steps were seen

Search = Callable[[Config], OverlapPlanned | None]


def overlapped(bench: Bench, search: Search) -> Finding:
    """Overlapped steps or not, done so on all copies by `search`, which tells what it found."""
    config = bench.config
    if config.cluster.workers == 1:
        return nothing("one worker has nothing to hide", OFF)
    if config.cluster.gpus_per_worker:
        return nothing("it works on CPUs", OFF)
    by_part = config.clip is None and config.precision != "float16"
    hidden = min(bench.exposed, bench.alone * (1 if by_part else BACKWARD))
    cost, saving = SEARCH_STEPS * bench.seconds + SEARCH_SECONDS, hidden / bench.seconds * bench.run_seconds
    if not bench.budget.allows(cost, saving):
        share = f"{hidden / bench.seconds:.0%} of a step"
        return nothing(f"{share} could be hidden at most, which is not worth a search of {cost:.0f} s", OFF)
    found = search(changed(config, SEARCHED))
    assert found is not None
    seconds = overlap_seconds(found)
    evidence = {f"{way}_step_seconds": each for way, each in seconds.items()}
    bench.seconds = seconds[found.chosen]
    return Finding(SEARCHED, evidence, seconds["ddp"] / bench.seconds, overlap_sentence(found))
