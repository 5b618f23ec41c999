"""What continuous batches gain: one engine serves a batch at a time, another one sequence at a time, by turns."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from trainers.generation.engine import Engine
from trainers.generation.requests import Completion, Request
from trainers.models.transformer import Transformer


@dataclass(frozen=True)
class Throughput:
    """Tokens a second in each round. agreeing: the share of requests whose tokens are the same either way."""

    batch: int
    batched: list[float]
    one_at_a_time: list[float]
    agreeing: float

    @property
    def speedup(self) -> float:
        """Median over rounds of batched over one at a time."""
        return median(many / one for many, one in zip(self.batched, self.one_at_a_time, strict=True))


def throughput(
    model: Transformer, context: int, requests: Sequence[Request], batch: int = 16, rounds: int = 3
) -> Throughput:
    """Serve the requests `rounds` times in either way, interleaved, after a first token that is not counted."""
    engines = [Engine(model, context, batch=size) for size in (batch, 1)]
    for engine in engines:
        engine.generate([Request(requests[0].prompt, max_new_tokens=2)])
    served = [[_timed(engine, requests) for engine in engines] for _ in range(rounds)]
    many, one = served[0][0][1], served[0][1][1]
    agreeing = sum(a.tokens == b.tokens for a, b in zip(many, one, strict=True)) / len(requests)
    return Throughput(batch, [pair[0][0] for pair in served], [pair[1][0] for pair in served], agreeing)


def _timed(engine: Engine, requests: Sequence[Request]) -> tuple[float, list[Completion]]:
    """Tokens a second, and the completions."""
    begun = perf_counter()
    completions = engine.generate(requests)
    return sum(len(completion.tokens) for completion in completions) / (perf_counter() - begun), completions
