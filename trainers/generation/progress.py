"""How far generation is, for people: a line that a command can show and overwrite."""

from collections.abc import Callable, Sequence
from time import monotonic

from trainers.generation.requests import Produced, Request


class Progress:
    """Counts what `Engine.generate` or `stream` produces."""

    def __init__(self, requests: Sequence[Request], clock: Callable[[], float] = monotonic) -> None:
        self._left = [request.max_new_tokens for request in requests]  # at most, of each request
        self._complete, self._tokens = 0, 0
        self._clock, self._begun = clock, clock()

    def __call__(self, produced: Produced) -> None:
        self._tokens += 1
        self._left[produced.request] -= 1
        if produced.completion:
            self._complete += 1
            self._left[produced.request] = 0

    @property
    def tokens_per_second(self) -> float:
        return self._tokens / max(self._clock() - self._begun, 1e-9)

    def line(self) -> str:
        """Such as "3 of 32 prompts complete, 512 tokens, 180 tokens/s, at most 12 s left"."""
        line = f"{self._complete} of {len(self._left)} prompts complete, {self._tokens} tokens"
        if not self._tokens:
            return line
        rate = self.tokens_per_second
        return f"{line}, {rate:.3g} tokens/s, at most {sum(self._left) / rate:.0f} s left"
