"""What `comm-plan` shows a person: the answer in a few lines, progress of long solves, a tree where colours show.

Results go to standard output, everything else to standard error; colour, spinner and tree only where a person looks.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Protocol

from comm_plans.errors import listed
from comm_plans.sizes import counted, shown_bandwidth, shown_bytes, shown_seconds

if TYPE_CHECKING:
    from rich.tree import Tree as Drawn

    from comm_plans.cache import Entry
    from comm_plans.plan import Plan, Tree
    from comm_plans.simulator import Simulation

PATIENCE = 2.0  # seconds after which a solve that nobody watches says what it is doing
MOST_DRAWN = 64  # ranks
MOST_DIGITS = 32  # of an exact bandwidth, beyond which it is left to --json


class Report(Protocol):
    """Told the name of each step of a solve as it starts."""

    def __call__(self, step: str, /) -> None: ...


def note(words: str) -> None:
    """A remark on standard error."""
    print(words, file=sys.stderr)


@contextmanager
def progress() -> Iterator[Report]:
    """Shows the steps reported to it: as a spinner on a terminal, elsewhere line by line once it has taken long."""
    if sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("solving") as status:
            yield lambda step, /: status.update(step)
        return
    with _Patient() as report:
        yield report


class _Patient:
    """Silent for a while, then a line for the step under way and for each one that follows."""

    def __init__(self) -> None:
        self.step, self.late = "solving", False
        self.timer = Timer(PATIENCE, self._speak)
        self.timer.daemon = True

    def __call__(self, step: str, /) -> None:
        self.step = step
        if self.late:
            note(f"{step} …")

    def _speak(self) -> None:
        self.late = True
        note(f"{self.step} …")

    def __enter__(self) -> _Patient:
        self.timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.timer.cancel()


def show_plan(plan: Plan) -> None:
    """The answer of `solve` in three lines; on a terminal also its largest tree."""
    exact = "" if plan.algbw.denominator == 1 or len(str(plan.algbw)) > MOST_DIGITS else f" ({plan.algbw})"
    part = min(0.999, float(plan.algbw / plan.optimum))  # what falls short must not be called 100 %
    bound = "the network's optimum" if plan.optimal else f"{part:.1%} of the optimum"
    trees = "" if plan.trees_per_rank is None else f"trees per rank: {plan.trees_per_rank}, "
    took = shown_seconds(plan.solve_seconds)
    print(f"{plan.collective} on {plan.topology.name}: {shown_bandwidth(float(plan.algbw))}{exact}, {bound}")
    print(f"{len(plan.topology.ranks)} ranks, {trees}{counted(plan.depth, 'hop')} deep, solved in {took}, verified")
    if plan.bottleneck:
        inside = list(plan.bottleneck)
        outside = [name for name in plan.topology.nodes if name not in plan.bottleneck]
        few = inside if len(inside) <= len(outside) else outside
        print(f"limited by the links between {listed(few)} and all other nodes")
    if sys.stdout.isatty() and len(plan.topology.ranks) <= MOST_DRAWN:
        from rich.console import Console

        Console().print(_drawn(plan, max(plan.trees, key=lambda tree: tree.share)))


def show_simulation(plan: Plan, outcome: Simulation) -> None:
    """The answer of `simulate` in three lines."""
    busiest = outcome.busiest
    fluid = shown_seconds(float(outcome.fluid_seconds))
    size = shown_bytes(outcome.size_bytes)
    print(f"{plan.collective} of {size} takes {shown_seconds(outcome.seconds)}: {shown_bandwidth(outcome.algbw)}")
    course = f"{counted(outcome.chunks, 'chunk')} a tree in {counted(outcome.steps, 'step')}"
    print(f"{course}; bandwidth alone would take {fluid}")
    print(
        f"busiest link {busiest.source} → {busiest.target}: {shown_bytes(float(busiest.bytes))}, "
        f"busy {busiest.utilisation:.0%} of the time"
    )


def show_entries(entries: Sequence[Entry]) -> None:
    """A line for each plan of the cache."""
    for entry in entries:
        what = entry.fault or "{collective:<14} {network}, {algbw} GB/s".format_map(entry.summary)
        print(f"{entry.key}  {shown_bytes(entry.size_bytes):>10}  {what}")


def _drawn(plan: Plan, tree: Tree) -> Drawn:
    """A tree as rich draws it, switches on the way in brackets."""
    from rich.markup import escape
    from rich.text import Text
    from rich.tree import Tree as Drawn

    names = [escape(name) for name in plan.topology.nodes]
    below: defaultdict[int, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
    for path in tree.paths:
        way = path if tree.operation == "broadcast" else path[::-1]
        below[way[0]].append((way[-1], way[1:-1]))
    share = f"{tree.share} of the buffer, {'from' if tree.operation == 'broadcast' else 'summed up at'}"
    top = Drawn(Text.from_markup(f"{share} [bold green]{names[tree.root]}[/]"))
    stack = [(tree.root, top)]
    while stack:
        node, drawn = stack.pop()
        for child, between in below[node]:
            via = f" [dim]({', '.join(names[switch] for switch in between)})[/]" if between else ""
            stack.append((child, drawn.add(Text.from_markup(f"[cyan]{names[child]}[/]{via}"))))
    return top
