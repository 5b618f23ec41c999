"""The HTML of a report: what came out, the figures, every decision with its reasons, result and configuration."""

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from statistics import fmean

from orchestrator.communication import ROW_NAMES, plan_sentence
from orchestrator.communication import rows as communication_rows
from orchestrator.decide.words import NAMES, decided_row
from orchestrator.events import Json, PlanChosen
from orchestrator.history import History, Stage
from orchestrator.overlap_words import WAY_NAMES, overlap_rows, overlap_sentence
from orchestrator.recorders.secrets import mask_all
from orchestrator.summary import Summary
from orchestrator.words import (
    choice_text,
    count_text,
    duration_text,
    loss_text,
    policy_name,
    rate_text,
    recovered_text,
    score_text,
    task_name,
)

_STYLE = Path(__file__).with_name("report.css")
_LONGEST_VALUE = 400  # characters of one result; the rest is in result.json


def page(story: History, summary: Summary, pictures: Mapping[str, str]) -> str:
    """The whole page. `pictures` maps a figure's name to its HTML."""
    config: Json = story.started.config if story.started else {}
    sections = [
        _heading(story, config),
        _tiles(story, summary),
        _figure(pictures.get("rates_and_losses")),
        _decided(story),
        _decisions(story, pictures.get("searches")),
        _section("Cost", _figure(pictures["cost"])),
        _communication(story),
        _overlap(story, pictures.get("overlap")),
        _scores(story),
        _listed("Samples", (sample for score in story.scores[-1:] for sample in score.samples)),
        _listed("Recoveries", (recovered_text(event) for event in story.recoveries)),
        _listed("Warnings", story.warnings),
        _result(story),
        _section("Configuration", f"<pre>{escape(_yaml(mask_all(config)))}</pre>"),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(task_name(config))}</title><style>{_STYLE.read_text()}</style></head>\n"
        f"<body>\n{''.join(sections)}</body></html>\n"
    )


def _heading(story: History, config: Json) -> str:
    state = story.ended.state if story.ended else "UNFINISHED"
    facts = [f"learning rate: {policy_name(config)}", f"seed {config.get('seed')}"]
    if story.job:
        facts.append(f"{count_text(story.job.world_size, 'worker')} on {story.job.device}")
        facts.append(f"{story.job.parameters:,} parameters")
    if story.started:
        facts.append(datetime.fromtimestamp(story.started.started_at, UTC).strftime("%Y-%m-%d %H:%M UTC"))
    if story.resumed:
        facts.append(f"resumed {count_text(story.resumed, 'time')}")
    if story.recoveries:
        facts.append(f"recovered {count_text(len(story.recoveries), 'time')}")
    reason = f"<p>{escape(story.ended.reason)}</p>" if story.ended and story.ended.reason else ""
    return (
        f'<h1>{escape(task_name(config))}<span class="state {escape(state)}">{escape(state)}</span></h1>\n'
        f'<p class="sub">{escape(" · ".join(facts))}</p>{reason}\n'
    )


def _tiles(story: History, summary: Summary) -> str:
    seconds = math.fsum(summary["seconds"].values())
    tiles = {
        "validation loss": loss_text(summary["validation_loss"]),
        "test loss": loss_text(summary["test"].get("loss")),
        "training loss": loss_text(summary["train_loss"]),
        "steps trained": f"{summary['train_steps']:,}",
        "steps of search": f"{summary['probe_steps']:,}",
        "in all" if story.ended else "accounted for": duration_text(seconds),
    }
    items = (f'<div class="tile"><b>{value}</b><span>{name}</span></div>' for name, value in tiles.items())
    return f'<div class="tiles">{"".join(items)}</div>\n'


def _decided(story: History) -> str:
    """What was found out before the first step, and the numbers that it rests on."""
    if not story.decided:
        return ""
    rows = [[*map(escape, (*decided_row(event), event.reason))] for event in story.decided]
    table = _table((*NAMES, "why"), rows, numbers=range(1, 3))
    evidence = _table(("decision", "measured", "value"), _evidence(story), numbers=range(2, 3))
    return _section("Decided beforehand", f"{table}<details><summary>Evidence</summary>{evidence}</details>")


def _evidence(story: History) -> Iterable[list[str]]:
    for event in story.decided:
        yield from ([event.what, escape(name), f"{value:.4g}"] for name, value in event.evidence.items())


def _decisions(story: History, picture: str | None) -> str:
    stages = [stage for stage in story.stages.values() if stage.choice is not None]
    if not stages:
        return ""
    found = story.found.found if story.found else None
    interval = (
        f"<p>Searched from {rate_text(found.low)} to {rate_text(found.high)}: {escape(found.reason)}.</p>"
        if found
        else ""
    )
    header = ("stage", "from step", "steps", "rates tried", "rate", "forecast", "came to", "why")
    table = _table(header, [_decision(story, stage) for stage in stages], numbers=range(7))
    probes = [row for stage in story.stages.values() for row in _probes(stage)]
    details = _table(("stage", "rate", "steps", "loss at its end", "forecast", "quality"), probes, numbers=range(6))
    body = f"{interval}{_figure(picture)}{table}<details><summary>Every probe</summary>{details}</details>"
    return _section("Decisions", body)


def _communication(story: History) -> str:
    if story.plan is None or story.plan.source == "none":
        return ""
    body = f"<p>{escape(plan_sentence(story.plan))}.</p>"
    if story.communication is not None:
        table = _table(ROW_NAMES, communication_rows(story.communication), numbers=range(1, len(ROW_NAMES)))
        body += f"{table}<pre>{escape(story.communication.rule)}</pre>"
    return _section("Communication", body + _figure(_plan_picture(story.plan)))


def _overlap(story: History, picture: str | None) -> str:
    if story.overlap is None:
        return ""
    table = _table(WAY_NAMES, overlap_rows(story.overlap), numbers=range(1, len(WAY_NAMES)))
    words = f"{overlap_sentence(story.overlap)}; profiled on {story.overlap.machine}"
    return _section("Overlap", f"<p>{escape(words[0].upper() + words[1:])}.</p>{table}{_figure(picture)}")


def _scores(story: History) -> str:
    """The task's own evaluation, as it was last."""
    last = [[escape(name), score_text(value)] for score in story.scores[-1:] for name, value in score.metrics.items()]
    return _section("Scores", _table(("score", "value"), last, numbers=range(1, 2))) if last else ""


def _plan_picture(plan: PlanChosen) -> str | None:
    """The SVG as an image, in which nothing can run."""
    if not plan.picture:
        return None
    data = base64.b64encode(plan.picture.encode()).decode()
    return f'<img alt="the plan" src="data:image/svg+xml;base64,{data}">'


def _decision(story: History, stage: Stage) -> list[str]:
    assert stage.choice is not None
    followed = [each.loss for each in stage.forecasts if each.chosen_by(stage.choice)]
    return [
        str(stage.number),
        f"{stage.first_step:,}",
        f"{stage.choice.steps:,}",
        str(len(stage.forecasts)),
        f'<span class="chosen">{choice_text(stage.choice.rate, stage.choice.settings)}</span>',
        loss_text(followed[-1] if followed else None),
        loss_text(_came_to(story, stage)),
        escape(stage.choice.reason),
    ]


def _came_to(story: History, stage: Stage) -> float | None:
    """Training loss at the stage's end, over its last tenth: one batch alone is noise."""
    losses = [
        loss for each in story.segments if (each.kind, each.stage) == ("train", stage.number) for loss in each.losses
    ]
    return fmean(losses[-max(1, len(losses) // 10) :]) if losses else None


def _probes(stage: Stage) -> Iterable[list[str]]:
    forecasts = {(forecast.rate, *forecast.settings.items()): forecast for forecast in stage.forecasts}
    for probe in stage.probes:
        if not probe.rates:
            continue
        forecast = forecasts.get((probe.rates[-1], *probe.settings.items()))
        foreseen = "–" if forecast is None else "diverged" if forecast.diverged else loss_text(forecast.loss)
        rates = dict.fromkeys((rate_text(probe.rates[0]), choice_text(probe.rates[-1], probe.settings)))
        quality = "–" if forecast is None else f"{forecast.quality:.2f}"
        yield [
            str(stage.number),
            " … ".join(rates),
            str(len(probe.rates)),
            loss_text(probe.train_losses[-1]),
            foreseen,
            quality,
        ]


def _result(story: History) -> str:
    if story.ended is None:
        return ""
    rows = [[escape(name), escape(_shortened(value))] for name, value in story.ended.result.items()]
    return _section("Result", _table(("", ""), rows))


def _shortened(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} … (whole in result.json)"


def _listed(title: str, texts: Iterable[str]) -> str:
    items = "".join(f"<pre>{escape(text)}</pre>" for text in texts)
    return _section(title, items) if items else ""


def _figure(picture: str | None) -> str:
    return f"<figure>{picture}</figure>\n" if picture else ""


def _section(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>\n{body}\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: range = range(0)) -> str:
    """Cells are HTML; the columns in `numbers` are set flush right."""
    classes = [' class="n"' if column in numbers else "" for column in range(len(header))]
    head = "".join(f"<th{kind}>{name}</th>" for kind, name in zip(classes, header, strict=True))
    lines = ("".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(classes, row, strict=True)) for row in rows)
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f'<div class="scroll"><table><tr>{head}</tr>\n{body}</table></div>'


def _yaml(values: Json) -> str:
    import yaml

    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
