"""What ways to serve gain: all serve the same requests, by turns, and what they answer is compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from trainers.generation.engine import Engine
from trainers.generation.requests import Completion, Request
from trainers.models.transformer import Transformer

Serve = Callable[[Sequence[Request]], list[Completion]]


@dataclass(frozen=True)
class Served:
    """Tokens a second in each round, and the completions of the last."""

    tokens_per_second: list[float]
    completions: list[Completion]

    def agreeing(self, other: "Served") -> float:
        """The share of requests whose tokens are the same."""
        pairs = zip(self.completions, other.completions, strict=True)
        return sum(a.tokens == b.tokens for a, b in pairs) / len(self.completions)

    def speedup(self, other: "Served") -> float:
        """Median over rounds of how much faster this is."""
        pairs = zip(self.tokens_per_second, other.tokens_per_second, strict=True)
        return median(mine / theirs for mine, theirs in pairs)


def by_turns(ways: Mapping[str, Serve], requests: Sequence[Request], rounds: int) -> dict[str, Served]:
    """Serve the requests `rounds` times in each way, in an order that turns, after tokens that are not counted."""
    for serve in ways.values():
        serve([Request(requests[0].prompt, max_new_tokens=2)])
    served = {name: Served([], []) for name in ways}
    for number in range(rounds):
        for name in list(ways)[:: 1 if number % 2 else -1]:
            rate, completions = _timed(ways[name], requests)
            served[name] = Served([*served[name].tokens_per_second, rate], completions)
    return served


@dataclass(frozen=True)
class Throughput:
    """Tokens a second in each round. agreeing: the share of requests whose tokens are the same either way."""

    batch: int
    batched: list[float]
    one_at_a_time: list[float]
    agreeing: float
    speedup: float


def throughput(
    model: Transformer, context: int, requests: Sequence[Request], batch: int = 16, rounds: int = 3
) -> Throughput:
    """What continuous batches gain over one sequence at a time."""
    ways = {"many": Engine(model, context, batch=batch).generate, "one": Engine(model, context, batch=1).generate}
    many, one = by_turns(ways, requests, rounds).values()
    return Throughput(batch, many.tokens_per_second, one.tokens_per_second, many.agreeing(one), many.speedup(one))


def _timed(serve: Serve, requests: Sequence[Request]) -> tuple[float, list[Completion]]:
    """Tokens a second, and the completions."""
    begun = perf_counter()
    completions = serve(requests)
    return sum(len(completion.tokens) for completion in completions) / (perf_counter() - begun), completions
