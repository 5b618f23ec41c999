"""What an event means to MLflow: metrics against the real step and against all steps, parameters, tags, texts.

The learning rate is a metric, never a parameter, for MLflow lets no parameter change. Infinite values are left out:
MLflow would store them as 1.8e308.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.all_steps import AllSteps
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
from orchestrator.recorders.mlflow.parameters import configuration, legal
from orchestrator.recorders.mlflow.spool import Operation

Point = tuple[str, float, int, int]  # key, value, milliseconds since the epoch, step


class Operations:
    """Turns one run's events into operations; remembers the step for events that have none of their own.

    earlier: the events of the processes before this one.
    """

    def __init__(self, earlier: Sequence[Event] = ()) -> None:
        self._step = self._recoveries = 0
        self._rate: float | None = None
        self._all_steps = AllSteps(earlier)

    def of(self, event: Event) -> list[Operation]:
        """What to send for one event."""
        now = int(time.time() * 1000)
        self._all_steps.note(event)
        match event:
            case RunStarted():
                return configuration(event)
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
                return [_metrics([*self._steps(event, now), *self._train_losses(event, now)])]
            case Validated():
                return [_metrics([*_prefixed(event.split, event.metrics, now, event.step), *self._loss(event, now)])]
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

    def _train_losses(self, event: StepsTrained | ArmTakenUp, now: int) -> Iterable[Point]:
        return (("all_steps/train_loss", loss, now, step) for step, loss in self._all_steps.train_losses(event))

    def _loss(self, event: Validated, now: int) -> Iterable[Point]:
        if event.split == "validation":
            step, loss = self._all_steps.validation_loss(event)
            yield "all_steps/validation_loss", loss, now, step


def _plan(event: PlanChosen) -> list[Operation]:
    tags = _tags(plan=event.source, plan_key=event.key, plan_algbw=event.algbw, plan_network=event.network)
    picture = [{"op": "text", "file": "plan.svg", "text": event.picture}] if event.picture else []
    return [tags, *picture, {"op": "params", "values": {"plan": event.network or "none"}}]


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
