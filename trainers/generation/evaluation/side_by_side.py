"""Methods side by side on several texts: those that hold a share of mass, and rivals that read as many tokens."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from trainers.errors import GenerationError
from trainers.generation.evaluation.comparison import Comparison, Row, rivals
from trainers.generation.evaluation.methods import dense_layers
from trainers.generation.evaluation.prefilled import Prefilled
from trainers.generation.sparse_attention.oracle import OracleTopP
from trainers.generation.sparse_attention.tactic import Tactic
from trainers.models.transformer import Transformer

FULL, TACTIC, ORACLE = "full", "Tactic", "oracle top-p"
NAMES = (FULL, TACTIC, ORACLE, *rivals(1000, 1))


@dataclass(frozen=True)
class Line:
    """A row for one target; of rivals it is the target at which Tactic reads as many tokens, of full attention None."""

    target: float | None
    row: Row


def lines(
    model: Transformer, prompt: Prefilled, following: Sequence[int], targets: Sequence[float], names: Sequence[str]
) -> Iterator[Line]:
    """Full attention; then for each target Tactic, whose tokens are the rivals' budget, and what else is named.

    Tactic never falls back to reading all here, so that what it attains is its own.
    """
    comparison = comparison_on(model, prompt, following)
    yield Line(None, comparison.full)
    for target in targets if {*names} - {FULL} else ():
        yield from lines_at(target, comparison, names)


def comparison_on(model: Transformer, prompt: Prefilled, following: Sequence[int]) -> Comparison:
    """Full attention's part of a comparison, whose methods find their compiled code loaded."""
    _load_compiled_code(model, prompt, following)
    return Comparison(model, prompt, following, dense_layers(len(model.blocks)))


def lines_at(target: float, comparison: Comparison, names: Sequence[str]) -> Iterator[Line]:
    """Tactic, and of other methods those that are named."""
    tactic = comparison.row(TACTIC, Tactic(target, dense_share=1.0))
    others = {ORACLE: OracleTopP(target), **rivals(round(tactic.read), comparison.layers)}
    yield Line(target, tactic)
    for name in (name for name in others if name in names):
        yield Line(target, comparison.row(name, others[name]))


def _load_compiled_code(model: Transformer, prompt: Prefilled, following: Sequence[int]) -> None:
    """One step for nothing, so that none of those that are timed waits for it."""
    Comparison(model, prompt, following[:2], dense_layers(len(model.blocks))).row(TACTIC, Tactic())


def chosen(names: Sequence[str]) -> list[str]:
    """The methods that a person means by quest, oracle_top_k or "Ada-KV". Raises GenerationError, listing all."""
    known = {short_name(name): name for name in NAMES}
    for name in names:
        if short_name(name) not in known:
            raise GenerationError(f"The method {name!r} is unknown; choose among {', '.join(known)}.")
    return [known[short_name(name)] for name in names]


def short_name(name: str) -> str:
    """A name as it is typed: lower case, words joined by _."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower())


def averaged(texts: Sequence[Sequence[Line]]) -> list[Line]:
    """The mean of each line over texts; of the 5th percentile the least."""
    return [Line(same[0].target, _mean([line.row for line in same])) for same in zip(*texts, strict=True)]


def _mean(rows: Sequence[Row]) -> Row:
    needed = [row.needed for row in rows if row.needed is not None]
    return Row(
        name=rows[0].name,
        read=fmean(row.read for row in rows),
        needed=fmean(needed) if needed else None,
        mass_mean=fmean(row.mass_mean for row in rows),
        mass_p5=min(row.mass_p5 for row in rows),
        kl=fmean(row.kl for row in rows),
        perplexity=fmean(row.perplexity for row in rows),
        top1_agreement=fmean(row.top1_agreement for row in rows),
        seconds=fmean(row.seconds for row in rows),
    )
