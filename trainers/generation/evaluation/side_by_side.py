"""Methods side by side on several texts: those that hold a share of mass, and rivals that read as many tokens."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from trainers.errors import GenerationError
from trainers.generation.evaluation.comparison import Row, compare, rivals
from trainers.generation.evaluation.methods import dense_layers
from trainers.generation.evaluation.prefilled import Prefilled
from trainers.generation.sparse_attention.method import Method
from trainers.generation.sparse_attention.oracle import OracleTopP
from trainers.generation.sparse_attention.tactic import Tactic
from trainers.models.transformer import Transformer

TACTIC, ORACLE = "Tactic", "oracle top-p"
NAMES = (TACTIC, ORACLE, *rivals(1000, 1))


@dataclass(frozen=True)
class Line:
    """A row for one target; of rivals it is the target at which Tactic reads as many tokens, of full attention None."""

    target: float | None
    row: Row


def lines(
    model: Transformer, prompt: Prefilled, following: Sequence[int], targets: Sequence[float], names: Sequence[str]
) -> Iterator[Line]:
    """Full attention, then for each target Tactic, whose tokens are the rivals' budget, and what else is named.

    Tactic never falls back to reading all here, so that what it attains is its own.
    """
    layers = len(model.blocks)
    _load_compiled_code(model, prompt, following)
    for number, target in enumerate(targets):
        by_mass: dict[str, Method] = {TACTIC: Tactic(target, dense_share=1.0), ORACLE: OracleTopP(target)}
        wanted = {name: method for name, method in by_mass.items() if name in (TACTIC, *names)}
        full, tactic, *oracle = compare(model, prompt, following, wanted, dense_layers(layers))
        yield from [] if number else [Line(None, full)]
        yield from (Line(target, row) for row in (tactic, *oracle))
        at_equal = {name: each for name, each in rivals(round(tactic.read), layers).items() if name in names}
        for row in list(compare(model, prompt, following, at_equal, dense_layers(layers)))[1:] if at_equal else []:
            yield Line(target, row)


def _load_compiled_code(model: Transformer, prompt: Prefilled, following: Sequence[int]) -> None:
    """One step for nothing, so that none of those that are timed waits for it."""
    list(compare(model, prompt, following[:2], {TACTIC: Tactic()}, dense_layers(len(model.blocks))))


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
