"""Attained mass, tokens and predictions of every method, on long prompts of three texts."""

from __future__ import annotations

from collections.abc import Iterator

from benchmark_parts.generation.prompts import TEXTS, stored
from benchmark_parts.generation.rows import Row, row

from trainers.generation.evaluation.side_by_side import NAMES, ORACLE, Line, comparison_on, lines, lines_at
from trainers.models.gguf import LoadedModel

TARGETS = (0.8, 0.9, 0.95)
MIDDLE = 0.9
COMPARED = (ORACLE, "Quest", "Quest + sinks and recent", "SnapKV")
CURVE_STEPS = 16


def accuracy_rows(model: LoadedModel, context: int, steps: int, curve_steps: int = CURVE_STEPS) -> Iterator[Row]:
    """On each text Tactic at all targets, at the middle one also the oracle, and rivals with as many tokens as Tactic.

    For the figure, all methods at all targets on the first text, in fewer steps (part "curve").
    """
    for number, text in enumerate(TEXTS):
        found = stored(model, text, context, steps)
        prompt, following = found.prompt, found.following
        comparison = comparison_on(model.model, prompt, following)
        yield _row("accuracy", text, context, steps, Line(None, comparison.full))
        for target in TARGETS:
            for line in lines_at(target, comparison, COMPARED if target == MIDDLE else ()):
                yield _row("accuracy", text, context, steps, line)
        if not number:
            for line in lines(model.model, prompt, following[: curve_steps + 1], TARGETS, NAMES):
                yield _row("curve", text, context, curve_steps, line)


def _row(part: str, text: str, context: int, steps: int, line: Line) -> Row:
    found = line.row
    print(f"  {part}, {text}: {found.name} at {line.target}: mass {found.mass_mean:.3f}", flush=True)
    return row(
        part=part, text=text, context=context, steps=steps, target=line.target, method=found.name, read=found.read,
        needed=found.needed, mass_mean=found.mass_mean, mass_p5=found.mass_p5, kl=found.kl, perplexity=found.perplexity,
        top1_agreement=found.top1_agreement, milliseconds=[1e3 * found.seconds],
    )  # fmt: skip
