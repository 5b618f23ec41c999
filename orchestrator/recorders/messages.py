"""The things the terminal says once: what will run, each decision, how it ended and what to type next."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.communication import measured_sentence, plan_sentence
from orchestrator.config import own_code
from orchestrator.decide.words import NAMES, decided_row
from orchestrator.events import (
    CommunicationMeasured,
    Decided,
    JobReady,
    Json,
    PlanChosen,
    RunEnded,
    RunResumed,
    RunStarted,
)
from orchestrator.learning_rate.policy import Choice, Forecast, RangeFound
from orchestrator.recorders.secrets import mask
from orchestrator.words import choice_text, count_text, duration_text, loss_text, policy_name, rate_text, task_name

_RATES_A_ROW = 6  # at most


def start(event: RunStarted) -> RenderableType:
    """What will run, at what cost, and where it goes."""
    config, cost = event.config, event.cost
    workers = config.get("cluster", {}).get("workers", 1)
    train, probe = cost.get("train_steps", 0), cost.get("probe_steps", 0)
    search = f", and at most {probe:,} of search ({_percent(probe, train + probe)} of all)" if probe else ""
    rows = {
        "train": f"{task_name(config)} on {count_text(workers, 'worker')}, seed {config.get('seed')}",
        "rate": f"{policy_name(config)}, {count_text(cost.get('stages', 1), 'stage')}",
        **_past(event),
        "cost": f"{count_text(train, 'step')}{search}",
        "folder": event.folder,
    }
    return Group(Text(), _aligned(rows), Text(f"\nstarting {count_text(workers, 'worker')} …", style="bright_black"))


def resumed(event: RunResumed) -> RenderableType:
    """Where the run was taken up again."""
    return Text(f"resumed at step {event.step:,}" + (f" from {event.snapshot}" if event.snapshot else ""))


def workers(event: JobReady) -> RenderableType:
    """The gang is up."""
    ready = f"{count_text(event.world_size, 'worker')} ready on {event.device} in {duration_text(event.seconds)}"
    lines = [f"{ready}; the model has {event.parameters:,} parameters"]
    if event.dashboard:
        lines.append(f"Ray's dashboard: {event.dashboard} (sign in with the token in ~/.ray/auth_token)")
    return Text("\n".join(lines))


def plan(event: PlanChosen) -> RenderableType:
    """How gradients will travel."""
    return Text(plan_sentence(event))


def communication(event: CommunicationMeasured) -> RenderableType:
    """How gradients have travelled."""
    return Text(measured_sentence(event))


def decided(event: Decided, with_heading: bool) -> RenderableType:
    """A row of the table of what was decided before the first step, and why; its heading comes with the first."""
    heading = [Text(), Text(_decided_line(NAMES), style="bright_black")] if with_heading else []
    return Group(*heading, Text(_decided_line(decided_row(event))), Text(f"  {event.reason}"))


def interval(found: RangeFound) -> RenderableType:
    """Where rates will be searched."""
    return Text(f"rates between {rate_text(found.low)} and {rate_text(found.high)}: {found.reason}")


def decision(choice: Choice, forecasts: Sequence[Forecast]) -> RenderableType:
    """What a stage tried, what was expected of each rate, and what it will use."""
    chosen = Text.assemble(
        (f"stage {choice.stage}", "bold"),
        "  ",
        (choice_text(choice.rate, choice.settings), "bold blue"),
        f" for {count_text(choice.steps, 'step')}: {choice.reason}",
    )
    ordered = sorted((each for each in forecasts if not each.settings), key=lambda forecast: forecast.rate)
    others = [each for each in forecasts if each.settings]
    return Group(Text(), *_tried(ordered, choice), *_tried_also(others), chosen)


def end(event: RunEnded, started: RunStarted | None) -> RenderableType:
    """How it ended, what it cost, where the results are and what to type next."""
    folder = started.folder if started else "."
    config = started.config if started else {}
    if event.state != "FINISHED":
        reason = mask(event.reason or "no reason given")
        return Group(Text(), Text(f"{event.state}: {reason}", style="red"), _next_after_failure(folder, config))
    return Group(Text(), _outcome(event.result), Text(), _next_after_success(folder, config))


def _past(event: RunStarted) -> dict[str, str]:
    """What is taken from an earlier run, if anything is."""
    if event.past is None:
        return {}
    near = rate_text(event.config["lr"]["near"])
    return {"past": f"searched around {near}, as {event.past} chose for the same work; past=false: anew"}


def _tried(forecasts: Sequence[Forecast], choice: Choice) -> Iterator[Text]:
    """The rates in rising order above what they came to, the chosen one marked; in blocks that fit 80 columns."""
    rows = math.ceil(len(forecasts) / _RATES_A_ROW)
    for row in range(rows):
        block = forecasts[row * len(forecasts) // rows : (row + 1) * len(forecasts) // rows]
        styles = ["bold blue" if forecast.chosen_by(choice) else "" for forecast in block]
        yield _row("tried", [_rate_tried(forecast, choice) for forecast in block], styles)
        if len({forecast.steps for forecast in forecasts}) > 1:
            yield _row("steps", [f"{forecast.steps:,}" for forecast in block], styles)
        yield _row("reached", [_reached_text(forecast) for forecast in block], styles)
        yield _row("forecast", [_forecast_text(forecast) for forecast in block], styles)


def _tried_also(forecasts: Sequence[Forecast]) -> Iterator[Text]:
    """A line for each of the other settings, and what it came to."""
    for forecast in forecasts:
        came_to = f"{_reached_text(forecast)} after {count_text(forecast.steps or 0, 'step')}"
        yield Text.assemble(
            ("  also    ", "bright_black"), choice_text(forecast.rate, forecast.settings), f": {came_to}"
        )


def _row(name: str, cells: Sequence[str], styles: Sequence[str]) -> Text:
    return Text.assemble((f"  {name:<8}", "bright_black"), *zip((f"{cell:>10}" for cell in cells), styles, strict=True))


def _rate_tried(forecast: Forecast, choice: Choice) -> str:
    return ("▸" if forecast.chosen_by(choice) else "") + rate_text(forecast.rate)


def _reached_text(forecast: Forecast) -> str:
    return "diverged" if forecast.diverged else loss_text(forecast.reached)


def _forecast_text(forecast: Forecast) -> str:
    return loss_text(None if forecast.diverged else forecast.loss)


def _outcome(result: Json) -> RenderableType:
    train, probe = result.get("train_steps", 0), result.get("probe_steps", 0)
    test = result.get("test") or {}
    losses = [f"validation loss {loss_text(result.get('validation_loss'))}"]
    if "loss" in test:
        losses.append(f"test loss {loss_text(test['loss'])}")
    spent = f"{count_text(train, 'step')} and {count_text(probe, 'step')} of search"
    time = duration_text(result.get("wall_seconds", 0.0))
    return Text.assemble(("finished", "bold green"), f" in {time}: {', '.join(losses)}\n{spent}")


def _next_after_success(folder: str, config: Json) -> RenderableType:
    rows = {"results": str(Path(folder) / "result.json"), "report": str(Path(folder) / "report.html")}
    uri = config.get("tracking", {}).get("uri")
    if uri:
        rows["MLflow"] = f"mlflow ui --backend-store-uri {mask(uri)}" if "sql" in uri else mask(uri)
    score = _with_own_code(f"orchestrate run evaluate={folder}", config)
    return _aligned({**rows, "compare": "orchestrate compare", "score": score})


def _next_after_failure(folder: str, config: Json) -> RenderableType:
    going_on = _with_own_code(f"orchestrate resume {folder}", config)
    return _aligned({"journal": str(Path(folder) / "journal.jsonl"), "go on": going_on})


def _with_own_code(command: str, config: Json) -> str:
    return " ".join([command, *own_code(config)])


def _decided_line(cells: Sequence[str]) -> str:
    what, cost, gain, chosen = cells
    return f"{what:<14}{cost:>8}{gain:>9}  {chosen}"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def _aligned(rows: dict[str, str]) -> RenderableType:
    return Group(*(Text.assemble((f"{name:<9}", "bright_black"), value) for name, value in rows.items()))
