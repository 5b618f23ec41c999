"""What was decided for a run, as its events tell it, and the configuration that follows from it.

A run decides once: workers that come later, after a failure or a resume, are built from this.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from orchestrator.config import Config
from orchestrator.errors import UserError
from orchestrator.events import Decided, Event


def _count(value: Any) -> bool:
    return type(value) is int and value >= 1


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0


_ALLOWED: dict[str, Callable[[Any], bool]] = {  # nothing else in a folder's journal can change its configuration
    "communication.method": lambda value: value in ("backend", "planned"),
    "communication.threshold_bytes": lambda value: value is None or (type(value) is int and value >= 0),
    "overlap.mode": lambda value: value in ("off", "searched"),
    "batch_size": _count,
    "steps": _count,
    "lr.rate": _positive,
    "lr.known_lr": _positive,
    "lr.near": _positive,
    "lr.validate_every": _count,
}


def decisions(events: Iterable[Event]) -> dict[str, Decided]:
    """What has been decided, by name."""
    return {event.what: event for event in events if isinstance(event, Decided)}


def with_decisions(config: Config, events: Iterable[Event]) -> Config:
    """The configuration with all that has been decided. UserError where a journal decides what no run does."""
    for event in decisions(events).values():
        config = changed(config, event.chosen)
    return config


def changed(config: Config, chosen: Mapping[str, Any]) -> Config:
    """The configuration with these keys set. UserError for one that no decision sets, or sets so."""
    for key, value in chosen.items():
        if key not in _ALLOWED or not _ALLOWED[key](value):
            raise UserError(f"the journal decides {key}={str(value)[:40]}, which no run does; start the run anew")
        config = _with(config, key, value)
    return config


def _with(config: Config, key: str, value: Any) -> Config:
    group, _, name = key.rpartition(".")
    if not group:
        return replace(config, **{name: value})
    if group == "lr":
        return replace(config, lr={**config.lr, name: value})
    return replace(config, **{group: replace(getattr(config, group), **{name: value})})
