"""What overlapping came to, in numbers and words: each way's time a step, and the one that is followed."""

from collections.abc import Iterator
from statistics import median

from orchestrator.events import Json, OverlapPlanned
from orchestrator.words import duration_text

WAY_NAMES = ("way", "measured a step", "over nothing overlapped")
SERIAL = "serial"
_WORDS = {SERIAL: "nothing overlapped", "ddp": "DistributedDataParallel"}


def overlap_seconds(event: OverlapPlanned) -> dict[str, float]:
    """Median seconds of a step by way."""
    return {way: median(samples) for way, samples in event.seconds.items()}


def overlap_sentence(event: OverlapPlanned) -> str:
    """The way that is followed, and what it saves."""
    seconds = overlap_seconds(event)
    ratio = seconds[SERIAL] / seconds[event.chosen]
    predicted = "" if event.predicted_seconds is None else f" (predicted {_milliseconds(event.predicted_seconds)})"
    return (
        f"steps by {way_text(event.chosen)}: {_milliseconds(seconds[event.chosen])}{predicted}, "
        f"{ratio:.2f} × as fast as with {_WORDS[SERIAL]}"
    )


def overlap_rows(event: OverlapPlanned) -> Iterator[list[str]]:
    """A line of text for each way, as WAY_NAMES says."""
    seconds = overlap_seconds(event)
    for way, value in seconds.items():
        yield [way_text(way), _milliseconds(value), f"{seconds[SERIAL] / value:.2f} ×"]


def overlap_result(event: OverlapPlanned | None) -> Json | None:
    """What result.json says of it."""
    if event is None:
        return None
    seconds = overlap_seconds(event)
    return {
        "chosen": event.chosen,
        "predicted_seconds": event.predicted_seconds,
        "measured_seconds": seconds[event.chosen],
        "serial_seconds": seconds[SERIAL],
        "ddp_seconds": seconds["ddp"],
        "machine": event.machine,
    }


def way_text(way: str) -> str:
    """A way in words."""
    return _WORDS.get(way, f"a searched pipeline of {way}")


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else duration_text(seconds)
