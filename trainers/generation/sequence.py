"""One request while it is being served: its tokens, where they are stored, and whether it has come to its end."""

from collections.abc import Callable

import numpy as np
from torch import Tensor

from trainers.generation.kv_cache import KVCache, PageTable
from trainers.generation.requests import Completion, Reason, Request
from trainers.generation.sparse_attention.method import LayerStore, Reader

TokenBytes = Callable[[int], bytes]


class Sequence:
    """A request's state as it is known (tokens, completion) and as it is planned (length, stored, decoding).

    tokens: prompt and what is known of what was produced. length: tokens that there are when all passes that have been
    formed are done; of these `stored` are in the cache then. decoding: all but the newest are.
    readers: one a layer once the prompt is stored, of a sparse method. windows: the last queries of the prompt in each
    layer, while it is being stored for a sparse method. restored: tokens of its prompt that came from a tier.
    """

    def __init__(self, number: int, request: Request, cache: KVCache, context: int) -> None:
        self.number, self.request, self._context = number, request, context
        self.tokens = list(request.prompt)
        self.length = len(request.prompt)
        self.stored = self.restored = 0
        self.decoding = False
        self.table = PageTable(cache.pages)
        self.stores: list[LayerStore] = []
        self.readers: list[Reader] = []
        self.windows: dict[int, Tensor] = {}
        self.random = np.random.default_rng(request.seed)
        self.completion: Completion | None = None
        self._text = bytearray()
        self._log_probabilities: list[float] = []

    @property
    def most_slots(self) -> int:
        return self.request.slots(self._context)

    @property
    def planned(self) -> int:
        """Tokens that it has produced when all passes that have been formed are done."""
        return self.length - len(self.request.prompt)

    @property
    def over(self) -> bool:
        """Whether it wants no pass any more: it is complete, or will be after those that have been formed."""
        return self.completion is not None or self.length > self.most_slots

    def store(self, stop: int) -> None:
        """Plan that tokens before `stop` are stored; once all are, the next one is told."""
        self.stored = stop
        if stop == self.length:
            self.length += 1
            self.decoding = True

    def preempt(self) -> None:
        """Give up all that is stored; it is restored or computed again later."""
        self.table.release()
        self.stored, self.decoding = 0, False

    def restore(self, tokens: int) -> None:
        """Its first `tokens` tokens are stored already."""
        self.stored, self.decoding = tokens, tokens == self.length - 1

    def accept(self, token: int, log_probability: float | None = None, token_bytes: TokenBytes | None = None) -> None:
        """Add the token that follows, and see whether it is the last."""
        self.tokens.append(token)
        if log_probability is not None and self.request.log_probabilities:
            self._log_probabilities.append(log_probability)
        reason = "stop_token" if token in self.request.stop_tokens else self._written(token, token_bytes)
        reason = reason or self._at_an_end()
        if reason:
            produced = self.tokens[len(self.request.prompt) :]
            self.completion = Completion(produced, bytes(self._text), reason, self._log_probabilities, self.restored)

    def _written(self, token: int, token_bytes: TokenBytes | None) -> Reason | None:
        """Add the token's bytes; if they complete a stop string, cut the text before the first one."""
        if token_bytes is None:
            return None
        before = len(self._text)
        self._text += token_bytes(token)
        begins = (self._text.find(stop, max(0, before - len(stop) + 1)) for stop in self.request.stop_strings)
        found = [begin for begin in begins if begin >= 0]
        if found:
            del self._text[min(found) :]
        return "stop_string" if found else None

    def _at_an_end(self) -> Reason | None:
        if len(self.tokens) == len(self.request.prompt) + self.request.max_new_tokens:
            return "length"
        return "context" if len(self.tokens) > self._context else None
