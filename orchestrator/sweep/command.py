"""The story of `orchestrate sweep`: words → plan → cluster → trials → table, figure and the best configuration."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager, nullcontext
from pathlib import Path

from rich.console import Console

from orchestrator.cluster.connection import NoRoomError, connect
from orchestrator.cluster.nodes import ranks_held
from orchestrator.config import granted_targets, recorded_config
from orchestrator.dry_run import print_dry_run
from orchestrator.errors import UserError
from orchestrator.launch import check_beforehand
from orchestrator.run_folder import read_result, require_no_links
from orchestrator.run_state import RunState
from orchestrator.stopping import Stopped, stopping_on_signals
from orchestrator.sweep.book import BEST, Book, best_of, new_book, old_book, require_no_sweep
from orchestrator.sweep.plan import FOLDER, Plan, planned
from orchestrator.sweep.results import FIGURE, write_results
from orchestrator.sweep.space import value_text
from orchestrator.sweep.terminal import SweepTerminal, trial_table
from orchestrator.sweep.tracking import tracked
from orchestrator.sweep.tuning import carry_out
from orchestrator.training import cluster_options, probe_replicas
from orchestrator.words import count_text


def sweep(words: Sequence[str]) -> int:
    """Search from the beginning, in a new folder; returns the exit status."""
    plan = planned(words)
    require_no_sweep(plan.folder)
    if plan.config.dry_run:
        return _told_beforehand(plan)
    return _on_cluster(plan, lambda: new_book(plan))


def resume_sweep(folder: Path, grants: Sequence[str]) -> int:
    """Go on with a sweep that was interrupted: finished trials are not repeated, the others go on where they stood."""
    require_no_links(folder)
    book = old_book(folder)
    if (folder / BEST).is_file():
        raise UserError(f"{folder} holds a finished sweep; its best configuration is in {folder / BEST}")
    with _standing_in(book.identity["place"]):
        plan = planned([*book.identity["words"], f"{FOLDER}={folder.absolute()}"])
        granted = [*granted_targets(grants)]
        for config in (plan.config, *plan.corners):
            recorded_config(config.to_json(), granted)
        return _on_cluster(plan, lambda: book)


def _on_cluster(plan: Plan, book: Callable[[], Book]) -> int:
    check_beforehand(plan.config)
    try:
        with stopping_on_signals(), connect(cluster_options(plan.config)):
            _check_room(plan)
            with book() as opened:
                return _carried_out(plan, opened)
    except Stopped as stopped:
        print(f"{stopped}; go on with it by 'orchestrate resume {plan.folder}'")
        return 128 + stopped.number


def _told_beforehand(plan: Plan) -> int:
    """What would be searched, and what a trial in the middle of it would be."""
    console = Console(highlight=False)
    console.print(f"{_headline(plan)} would go into {plan.folder}", soft_wrap=True)
    for each in plan.space:
        ends = " … ".join(map(value_text, each.ends)) if not each.choices else ", ".join(map(value_text, each.choices))
        console.print(f"  {each.key}: {ends}", markup=False, soft_wrap=True)
    print_dry_run(plan.config, plan.folder)
    return 0


def _carried_out(plan: Plan, book: Book) -> int:
    """Make the trials that are missing and write what came of them all."""
    _note_finished(book)
    console, keys = Console(highlight=False), [each.key for each in plan.space]
    console.print(f"{_headline(plan)} in {book.folder}", soft_wrap=True)
    with tracked(plan, book):
        with SweepTerminal(keys, plan.trials, book.trials, console) as terminal:
            carry_out(plan, book, terminal.tell)
        write_results(plan, book)
    best = best_of(book.trials)
    console.print(trial_table(book.trials, keys, best))
    console.print(f"figure: {book.folder / FIGURE}", soft_wrap=True)
    if best is None:
        console.print("no trial has finished")
        return 1
    console.print(f"the best once more: orchestrate run @{book.folder / BEST}", soft_wrap=True)
    return 0


def _headline(plan: Plan) -> str:
    return f"{count_text(plan.trials, 'trial')} by search={plan.search}"


def _note_finished(book: Book) -> None:
    """Trials that came to their end, though the process that saw to it did not come to say so."""
    for trial in list(book.trials):
        if trial.state == RunState.RUNNING:
            result = read_result(book.folder_of(trial))
            if result.get("state") == RunState.FINISHED:
                book.end(trial.finished(result))


def _check_room(plan: Plan) -> None:
    """A trial for which no node has room would be waited for for ever."""
    cluster, ranks = plan.config.cluster, plan.config.cluster.workers * (1 + probe_replicas(plan.config))
    held = ranks_held(cluster.cpus_per_worker, cluster.gpus_per_worker)
    if held < ranks:
        raise NoRoomError(
            f"a trial needs {ranks} workers of {cluster.cpus_per_worker} CPU and {cluster.gpus_per_worker} GPU on one "
            f"node each, and the cluster's nodes hold {held}: set cluster.workers or what each needs lower"
        )


@contextmanager
def _standing_in(place: str) -> Iterator[None]:
    """Where the sweep was started, from which its relative paths lead."""
    with chdir(place) if Path(place).is_dir() else nullcontext():
        yield
