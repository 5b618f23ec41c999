"""What an event means to MLflow: metrics against the real step, parameters written once, tags, texts.

The learning rate is a metric, never a parameter, for MLflow lets no parameter change. Infinite values are left out:
MLflow would store them as 1.8e308.
"""

import json
import math
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.decide.words import chosen_text
from orchestrator.events import (
    ArmTakenUp,
    CommunicationMeasured,
    Decided,
    Event,
    ForecastMade,
    JobReady,
    Json,
    Measured,
    OverlapPlanned,
    PlanChosen,
    ProbeRan,
    RateChosen,
    RateLowered,
    Recovered,
    RunEnded,
    RunResumed,
    RunStarted,
    Scored,
    StepsTrained,
    Validated,
)
from orchestrator.overlap_words import overlap_result
from orchestrator.recorders.mlflow.spool import Operation
from orchestrator.recorders.secrets import mask_all

Point = tuple[str, float, int, int]  # key, value, milliseconds since the epoch, step

_LONGEST_PARAMETER = 6000  # MLflow cuts silently; we cut and say so
_LONGEST_KEY = 200  # MLflow takes 250, a prefix included


class Operations:
    """Turns one run's events into operations; remembers the step for events that have none of their own."""

    def __init__(self) -> None:
        self._step = self._recoveries = 0
        self._rate: float | None = None

    def of(self, event: Event) -> list[Operation]:
        """What to send for one event."""
        now = int(time.time() * 1000)
        match event:
            case RunStarted():
                return _configuration(event)
            case RunResumed():
                self._step = event.step
                return [{"op": "tags", "values": {"resumed_at_step": str(event.step)}}]
            case Recovered():
                self._step, self._recoveries = event.step, self._recoveries + 1
                return [_metrics([("recoveries", self._recoveries, now, event.step)])]
            case RateLowered():
                return [_metrics([("rate_factor", event.factor, now, event.first_step)])]
            case JobReady():
                return [_tags(world_size=event.world_size, device=event.device, model_parameters=event.parameters)]
            case PlanChosen():
                return _plan(event)
            case CommunicationMeasured():
                return _communication(event, now)
            case OverlapPlanned():
                return _overlap(event, now)
            case Decided():
                return _decided(event, now)
            case StepsTrained() | ArmTakenUp():
                return [_metrics(self._steps(event, now))]
            case Validated():
                return [_metrics(_prefixed(event.split, event.metrics, now, event.step))]
            case Measured():
                return [_metrics((name, value, now, event.step) for name, value in event.metrics.items())]
            case Scored():
                return _scores(event, now)
            case ProbeRan():
                return [_metrics(_probe(event, now))]
            case ForecastMade():
                return [_metrics([("probe/forecast", event.forecast.loss, now, self._step)])]
            case RateChosen():
                return [_metrics([("stage", event.choice.stage, now, self._step)])]
            case RunEnded():
                return [_metrics(_prefixed("result", _numbers(event.result), now, self._step))]
        return []

    def _steps(self, event: StepsTrained | ArmTakenUp, now: int) -> Iterable[Point]:
        """Every loss; the rate where it changes and at the end of the chunk."""
        last = len(event.rates) - 1
        for index, (rate, loss) in enumerate(zip(event.rates, event.losses, strict=True)):
            step = event.first_step + index
            then = now - round(event.seconds * 1000 * (last - index) / len(event.rates))
            yield ("train/loss", loss, then, step)
            if rate != self._rate or index == last:
                yield ("lr", rate, then, step)
            self._rate = rate
        self._step = event.first_step + len(event.rates)


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """A nested configuration as MLflow parameters: `{"lr": {"low": 1}}` becomes `{"lr.low": "1"}`."""
    parameters: dict[str, str] = {}
    for key, value in values.items():
        name = f"{prefix}{legal(str(key))}"[:_LONGEST_KEY]
        if isinstance(value, Mapping) and value:
            parameters.update(flat(value, f"{name}."))
        else:
            parameters[name] = _shortened(value if isinstance(value, str) else json.dumps(value))
    return parameters


def legal(name: str) -> str:
    """The name with what MLflow refuses replaced by an underscore."""
    return re.sub(r"[^\w\-. :]", "_", name).replace("..", "__").strip(".")[:_LONGEST_KEY] or "_"


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_PARAMETER:
        return text
    note = f" … ({len(text)} characters)"
    return text[: _LONGEST_PARAMETER - len(note)] + note


def _configuration(event: RunStarted) -> list[Operation]:
    config: Json = mask_all(event.config)
    return [
        {"op": "params", "values": flat(config)},
        {"op": "text", "file": "configuration.json", "text": json.dumps(config, indent=2)},
        _tags(run=event.run_id),
    ]


def _plan(event: PlanChosen) -> list[Operation]:
    tags = _tags(plan=event.source, plan_key=event.key, plan_algbw=event.algbw, plan_network=event.network)
    return [tags, {"op": "text", "file": "plan.svg", "text": event.picture}] if event.picture else [tags]


def _communication(event: CommunicationMeasured, now: int) -> list[Operation]:
    rows = [_metrics(_prefixed(f"communication/{name}", row, now, event.step)) for name, row in event.rows.items()]
    return [*rows, {"op": "text", "file": "communication.txt", "text": event.rule}]


def _overlap(event: OverlapPlanned, now: int) -> list[Operation]:
    numbers = {name: value for name, value in (overlap_result(event) or {}).items() if name.endswith("seconds")}
    points = [(f"overlap_{name}", value, now, 0) for name, value in numbers.items() if value is not None]
    return [_metrics(points), _tags(overlap=event.chosen)]


def _decided(event: Decided, now: int) -> list[Operation]:
    numbers = {"seconds": event.seconds, "gain": event.gain, **event.evidence}
    points = _prefixed(f"decided/{event.what}", numbers, now, 0)
    return [_tags(**{f"decided.{event.what}": chosen_text(event)}), _metrics(points)]


def _scores(event: Scored, now: int) -> list[Operation]:
    scores = [_metrics((_score_name(name), value, now, event.step) for name, value in event.metrics.items())]
    if not event.samples:
        return scores
    return [*scores, {"op": "text", "file": f"samples/step-{event.step:06d}.txt", "text": "\n\n".join(event.samples)}]


def _score_name(name: str) -> str:
    """`perplexity` belongs to the evaluation; `long_context/perplexity` says itself where it belongs."""
    return "/".join(map(legal, (name if "/" in name else f"evaluation/{name}").split("/")))


def _probe(event: ProbeRan, now: int) -> list[Point]:
    if not event.rates:
        return []
    return [
        ("probe/lr", event.rates[-1], now, event.first_step),
        ("probe/loss", event.train_losses[-1], now, event.first_step),
    ]


def _prefixed(prefix: str, metrics: Mapping[str, float], now: int, step: int) -> list[Point]:
    return [(f"{prefix}/{legal(name)}", value, now, step) for name, value in metrics.items()]


def _numbers(result: Json) -> dict[str, float]:
    return {
        name: value for name, value in result.items() if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _metrics(points: Iterable[Point]) -> Operation:
    return {"op": "metrics", "values": [point for point in points if not math.isinf(point[1])]}


def _tags(**values: object) -> Operation:
    return {"op": "tags", "values": {name: str(value) for name, value in values.items() if value is not None}}
