"""`orchestrate attention MODEL`: ways to attend compared on a model and texts: tokens read, mass, predictions, time."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from orchestrator.attention_models import Described, described
from orchestrator.errors import UserError
from orchestrator.words import duration_text, loss_text
from trainers.errors import DataError
from trainers.generation.cache_plan import CachePlan, available_memory
from trainers.generation.sparse_attention.settings import check_target

if TYPE_CHECKING:
    from trainers.generation.evaluation.side_by_side import Line
    from trainers.models.transformer import Transformer


_WIDTH = 120  # of a table that goes into a file or a pipe


def attention(options: Namespace) -> int:
    """Compare, showing progress on stderr; returns the exit status."""
    try:
        model, names = _checked(options), _names(options)
        _say(f"{model.name}: {_cache(model, options).statement()}, stored and once more for the method that decodes")
        lines = _compared(model, names, options)
    except DataError as error:
        raise UserError(str(error)) from error
    if options.json:
        print(json.dumps(_values(lines, model, options)))
    else:
        Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH).print(_table(lines, options.context))
    if options.figure:
        _draw(lines, options)
    return 0


def _draw(lines: "Sequence[Line]", options: Namespace) -> None:
    from orchestrator.attention_figure import draw

    try:
        draw(lines, options.context, options.figure)
    except OSError as error:
        raise UserError(f"--figure {options.figure} cannot be written ({error.strerror}); name another file") from error


def _checked(options: Namespace) -> Described:
    """The model as far as it is known before its weights are read, if everything asked for can be met."""
    for target in options.target:
        check_target(target)
    for name, least in (("context", 128), ("steps", 1)):
        if getattr(options, name) < least:
            raise UserError(f"--{name} is {getattr(options, name)}, and must be at least {least}")
    model = described(options.model, options.texts)
    for text, tokens in model.texts.items():
        if len(tokens) < options.context + options.steps + 1:
            raise UserError(
                f"{text} has {len(tokens)} tokens, too few for --context {options.context} and --steps "
                f"{options.steps}; lower them or name a longer text"
            )
    if model.limit and options.context + options.steps > model.limit:
        raise UserError(f"{model.name} looks back on {model.limit} tokens; lower --context or --steps")
    _cache(model, options).check(available_memory())
    return model


def _cache(model: Described, options: Namespace) -> CachePlan:
    return CachePlan(model.layers, model.key_value_heads, model.head_width, 2, options.context + options.steps)


def _names(options: Namespace) -> list[str]:
    from trainers.generation.evaluation.side_by_side import NAMES, chosen

    return list(NAMES) if options.methods == "all" else chosen(options.methods.split(","))


def _compared(described: Described, names: Sequence[str], options: Namespace) -> "list[Line]":
    from trainers.generation.evaluation.side_by_side import averaged

    model = described.load()
    texts = []
    for text, tokens in described.texts.items():
        used = tokens[: options.context + options.steps + 1].tolist()
        texts.append(list(_told(text, model, used, names, options)))
    return averaged(texts)


def _told(
    text: str, model: "Transformer", tokens: Sequence[int], names: Sequence[str], options: Namespace
) -> "Iterator[Line]":
    """The lines of one text, each said as it comes."""
    from trainers.generation.evaluation.prefilled import prefill
    from trainers.generation.evaluation.side_by_side import lines

    begun = monotonic()
    stored = prefill(model, tokens[: options.context])
    _say(f"{text}: {options.context} tokens stored in {duration_text(monotonic() - begun)}")
    for line in lines(model, stored, tokens[options.context :], list(dict.fromkeys(options.target)), names):
        _say(f"  {line.row.name}{'' if line.target is None else f' at {line.target:g}'}: mass {line.row.mass_mean:.3f}")
        yield line


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _values(lines: "Sequence[Line]", model: Described, options: Namespace) -> dict[str, object]:
    rows = [{"target": line.target, **asdict(line.row)} for line in lines]
    return {
        "model": model.name,
        "context": options.context,
        "steps": options.steps,
        "texts": list(model.texts),
        "rows": rows,
    }


def _table(lines: "Sequence[Line]", context: int) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bright_black", pad_edge=False)
    headings = (
        "method", "target", f"read\nof {context}", "a\nhead", "mass", "mass\np5", "KL", "perplexity", "top-1",
        "ms a\nstep",
    )  # fmt: skip
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "method" else "right", no_wrap=True, vertical="bottom")
    for line in lines:
        row = line.row
        table.add_row(
            row.name,
            "" if line.target is None else f"{line.target:g}",
            f"{row.read:.0f}",
            "" if row.needed is None else f"{row.needed:.0f}",
            f"{row.mass_mean:.3f}",
            f"{row.mass_p5:.3f}",
            f"{row.kl:.2g}",
            loss_text(row.perplexity),
            f"{row.top1_agreement:.0%}",
            f"{row.seconds * 1e3:.3g}",
        )
    return table
