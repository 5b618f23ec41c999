"""Tasks on several lanes at once, with results in the order of the tasks and one error that ends them all."""

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TypeVar

Result = TypeVar("Result")


def side_by_side(
    tasks: Sequence[tuple[Hashable, Callable[[], Result]]],
    heard: Callable[[Result], None],
    give_up: Callable[[], None],
) -> None:
    """Carry out (lane, task) pairs, those of a lane one after another; `heard` gets the results in the order given.

    Whatever goes wrong is raised once nothing runs any more: `give_up` must make tasks under way end. Tasks of a single
    lane run in the caller's thread.
    """
    lanes = {lane: ThreadPoolExecutor(1) for lane, _ in tasks}
    if len(lanes) == 1:
        for _, task in tasks:
            heard(task())
        return
    futures = [lanes[lane].submit(task) for lane, task in tasks]
    try:
        _listen(futures, heard)
    except BaseException:
        give_up()
        raise
    finally:
        for lane in lanes.values():
            lane.shutdown(cancel_futures=True)


def _listen(futures: Sequence["Future[Result]"], heard: Callable[[Result], None]) -> None:
    """Pass each result on as soon as those before it are there; raise the first error at once."""
    silent = list(futures)
    for done in as_completed(futures):
        done.result()
        while silent and silent[0].done():
            heard(silent.pop(0).result())
