"""Decisions as people read them: rows of one table."""

from dataclasses import replace

from orchestrator.events import Decided, Json, RunStarted
from orchestrator.words import duration_text

NAMES = ("decision", "cost", "gain", "chosen")
AS_GIVEN = "as given"


def decided_row(event: Decided) -> tuple[str, str, str, str]:
    """The cells of a decision, as NAMES says."""
    gain = f"{event.gain:.2f} ×" if event.gain != 1 else "–"
    return event.what, duration_text(event.seconds), gain, chosen_text(event)


def chosen_text(event: Decided) -> str:
    """The overrides that would have said the same."""
    words = (f"{key}={'null' if value is None else value}" for key, value in event.chosen.items())
    return " ".join(words) or AS_GIVEN


def decided_result(event: Decided) -> Json:
    """What result.json says of it."""
    return {
        "what": event.what,
        "chosen": event.chosen,
        "seconds": event.seconds,
        "gain": event.gain,
        "reason": event.reason,
    }


def with_cost(started: RunStarted, event: Decided) -> RunStarted:
    """The run's beginning, as if it had begun with what was decided: its steps may be others."""
    steps = {name: int(value) for name, value in event.evidence.items() if name in ("train_steps", "probe_steps")}
    return replace(started, cost={**started.cost, **steps})
