"""Timelines of a plan for people: what each stream does when, predicted or measured, as rows and as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10

from trainers.overlap.operations import OperationGraph, Resource
from trainers.overlap.plan import Launch, OverlapPlan

_COLOURS = {
    Resource.COMPUTE: "#1f6fb5",
    Resource.MEMORY: "#d9730d",
    Resource.NETWORK: "#2a9d8f",
    Resource.HOST: "#7b4fc4",
    Resource.DISK: "#8a6d1f",
}
_TEXT, _MUTED, _SHADE, _GRID = "#1d2733", "#66727f", "#f1f3f6", "#e8ebef"
_WIDTH, _LEFT, _LANE, _BAR, _HEAD, _LETTER = 960, 76, 24, 18, 30, 5.8


@dataclass(frozen=True)
class Bar:
    """An operation of an iteration on its stream, in seconds."""

    stream: Resource
    name: str
    iteration: int
    begin: float
    end: float


@dataclass(frozen=True)
class Lanes:
    """A timeline with its heading."""

    title: str
    bars: Sequence[Bar]


def predicted(plan: OverlapPlan, until: float) -> list[Bar]:
    """Iterations of the plan from the first on, up to a time in seconds."""
    resources = {name: resource for resource, names in plan.streams.items() for name in names}
    turns = int(until / plan.period_seconds) + 1 if plan.period_seconds else 1
    bars = (
        Bar(
            resources[name],
            name,
            turn,
            start + turn * plan.period_seconds,
            plan.ends[name] + turn * plan.period_seconds,
        )
        for turn in range(turns)
        for name, start in plan.starts.items()
    )
    return [bar for bar in bars if bar.begin < until]


def measured(graph: OperationGraph, spans: Mapping[Launch, tuple[float, float]]) -> list[Bar]:
    """What an executor told, from the first beginning on."""
    origin = min(begin for begin, _ in spans.values())
    return [
        Bar(graph[name].resource, name, turn, begin - origin, end - origin)
        for (turn, name), (begin, end) in spans.items()
    ]


def svg(lanes: Iterable[Lanes], until: float, unit: str = "ms", scale: float = 1e3) -> str:
    """A picture of timelines one below the other, on the same axis from 0 to `until` seconds."""
    parts: list[str] = []
    y = 8.0
    for each in lanes:
        parts.append(_words(each.title, 0, y + 14, _TEXT, 13, "600"))
        y += _HEAD
        for stream in [resource for resource in Resource if any(bar.stream == resource for bar in each.bars)]:
            parts += _lane(stream, [bar for bar in each.bars if bar.stream == stream], y, until)
            y += _LANE
        y += 14
    parts = [*_axis(y, until, unit, scale), *parts]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y + 24:.0f}" '
        f'font-family="Inter, system-ui, sans-serif">\n<rect width="100%" height="100%" fill="#ffffff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _lane(stream: Resource, bars: Sequence[Bar], y: float, until: float) -> Iterator[str]:
    yield _words(stream, 0, y + 13, _MUTED, 11)
    yield f'<rect x="{_LEFT}" y="{y:.1f}" width="{_WIDTH - _LEFT}" height="{_BAR}" fill="{_SHADE}"/>'
    for bar in bars:
        begin, end = _x(bar.begin, until), _x(min(bar.end, until), until)
        opacity = 1 if bar.iteration % 2 == 0 else 0.6
        yield (
            f'<rect x="{begin:.1f}" y="{y:.1f}" width="{max(end - begin - 0.8, 0.6):.1f}" height="{_BAR}" rx="1.5" '
            f'fill="{_COLOURS[stream]}" fill-opacity="{opacity}"><title>{escape(bar.name)}</title></rect>'
        )
        label = bar.name.partition("[")[0]
        if end - begin > _LETTER * len(label) + 6:
            yield _words(label, begin + 4, y + 13, "#ffffff", 10.5)


def _axis(y: float, until: float, unit: str, scale: float) -> Iterator[str]:
    step = _round_step(until * scale / 8)
    for tick in range(int(until * scale / step) + 1):
        x = _x(tick * step / scale, until)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="8" y2="{y:.0f}" stroke="{_GRID}"/>'
        yield _words(f"{tick * step:.3g}" + ("" if tick else f" {unit}"), x, y + 14, _MUTED, 11)


def _round_step(least: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)


def _x(seconds: float, until: float) -> float:
    return _LEFT + (_WIDTH - _LEFT) * seconds / until


def _words(text: str, x: float, y: float, colour: str, size: float, weight: str = "400") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" font-weight="{weight}">{escape(text)}</text>'
    )
