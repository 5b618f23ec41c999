"""The benchmark's results as Markdown: a line a task, losses as mean ± standard deviation over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from benchmark_parts.learning_rate.summary import HARD, METHOD, SOFT, Results


def markdown(results: Results) -> str:
    """Every family's test loss on every task; the best peer of a task is bold, and AutoLRS is compared with it."""
    families = [*results.peers, *results.fixed_rates]
    head = ["task", "steps", "rates found", "in all", METHOD, "within the steps", *families, "on top", "within"]
    return "\n".join(map(_line, [head, ["---"] * len(head), *(_cells(results, task) for task in results.tasks)]))


def brief(results: Results) -> str:
    """The method beside the best peer of each task."""
    head = ["task", "steps", "rates found", "in all", METHOD, "best peer", "on top", "within the steps"]
    return "\n".join(map(_line, [head, ["---"] * len(head), *(_brief_cells(results, task) for task in results.tasks)]))


def _brief_cells(results: Results, task: str) -> list[str]:
    cells, peer = _cells(results, task), results.comparison(task).peer
    return [*cells[:5], f"{peer} {_losses(results.losses(task, peer))}", *cells[-2:]]


def _cells(results: Results, task: str) -> list[str]:
    ours = results.chosen(task, METHOD)
    comparison, within = results.comparison(task), results.comparison(task, HARD)
    steps = results.steps(task)
    return [
        task,
        str(steps),
        " / ".join(f"{row['rate']:.2g}" for row in ours),
        f"{fmean(row['total_steps'] for row in ours) / steps:.2f}×",
        _losses(results.losses(task, METHOD, SOFT)),
        _losses(results.losses(task, METHOD, HARD)),
        *(_peer(results, task, peer, peer == comparison.peer) for peer in results.peers),
        *(_losses(results.losses(task, fixed)) for fixed in results.fixed_rates),
        f"{comparison.excess:+.1%}{'' if comparison.at_or_below else ' (above)'}",
        f"{within.excess:+.1%}{'' if within.at_or_below else ' (above)'}",
    ]


def _peer(results: Results, task: str, peer: str, best: bool) -> str:
    cell = _losses(results.losses(task, peer))
    return f"**{cell}**" if best else cell


def _losses(losses: Sequence[float]) -> str:
    spread = f" ± {stdev(losses):.1g}" if len(losses) > 1 else ""
    return f"{fmean(losses):.4g}{spread}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
