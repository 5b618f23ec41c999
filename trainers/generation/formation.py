"""When passes are formed: each after the one before it, or the next one while one runs.

Formed ahead, as NanoFlow does (arXiv 2408.12757), host work costs no time of the model's; the end of a sequence is then
noticed a pass late, after one token that nobody sees.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from typing import Literal, ParamSpec, TypeVar

from trainers.errors import GenerationError
from trainers.generation.model_pass import FormedPass, Outcome, Passes

Formation = Literal["asynchronous", "synchronous"]
Form = Callable[[], FormedPass | None]
"""The next pass; None if there is none as long as nothing new is known."""

P = ParamSpec("P")
T = TypeVar("T")


class AtOnce(Executor):
    """An executor that runs what it is given before it returns."""

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


def worker_for(formation: Formation) -> Executor:
    """Who runs passes, in the order in which they are handed over: this thread, or one of their own."""
    if formation not in ("asynchronous", "synchronous"):
        raise GenerationError(f"Formation is {formation!r}, and must be 'asynchronous' or 'synchronous'.")
    return ThreadPoolExecutor(1, "model") if formation == "asynchronous" else AtOnce()


def outcomes(form: Form, passes: Passes, worker: Executor) -> Iterator[Outcome]:
    """What passes tell, in order, until none is formed and none runs.

    It is taken before the next pass is formed by a worker that runs at once, else before the one after the next.
    """
    return _one_by_one(form, passes) if isinstance(worker, AtOnce) else _one_ahead(form, passes, worker)


def _one_by_one(form: Form, passes: Passes) -> Iterator[Outcome]:
    while formed := form():
        yield passes.run(formed)


def _one_ahead(form: Form, passes: Passes, worker: Executor) -> Iterator[Outcome]:
    """While a pass runs the next one is formed and put in line, so that the worker never waits for this thread."""
    line: deque[Future[Outcome]] = deque()
    try:
        while True:
            formed = form()
            if formed:
                line.append(worker.submit(passes.run, formed))
            if not line:
                return
            if len(line) == 2 or not formed:
                yield line.popleft().result()
    finally:
        passes.stopped.set()
        wait(line)
