"""What can be asked of the engine, and what it answers."""

from dataclasses import dataclass, field
from typing import Literal

from trainers.errors import GenerationError

Reason = Literal["length", "context", "stop_token", "stop_string"]


@dataclass(frozen=True)
class Request:
    """Continue `prompt`, a sequence of tokens, by up to `max_new_tokens` tokens.

    temperature: 0 takes the likeliest token, otherwise one is drawn from softmax(logits / temperature), of which only
    the likeliest tokens that hold `top_p` of the probability are kept (nucleus sampling, arXiv 1904.09751). What is
    drawn depends on `seed` and not on other requests. stop_strings: bytes, found wherever tokens are cut. conversation:
    a name; a later request of the same name goes on from what this one stored, as far as both begin with the same.
    """

    prompt: tuple[int, ...]
    max_new_tokens: int = 128
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop_tokens: frozenset[int] = frozenset()
    stop_strings: tuple[bytes, ...] = ()
    log_probabilities: bool = False
    conversation: str | None = None

    def slots(self, context: int) -> int:
        """Tokens that it stores at most; the last one produced is never stored."""
        return min(len(self.prompt) + self.max_new_tokens - 1, context)

    def check(self, name: str, vocabulary: int, context: int, cached: int) -> None:
        """Raise GenerationError if a model with this vocabulary and context can't serve it from `cached` slots.

        name: what the sentence calls it, such as "Prompt 3".
        """
        complaint = self._complaint(vocabulary, context, cached)
        if complaint:
            raise GenerationError(f"{name} {complaint}.")

    def _complaint(self, vocabulary: int, context: int, cached: int) -> str | None:
        if not self.prompt:
            return "is empty; give at least one token"
        if len(self.prompt) > context:
            return f"has {len(self.prompt)} tokens, the context holds {context}; shorten it"
        if not 0 <= min(self.prompt) <= max(self.prompt) < vocabulary:
            return f"holds a token outside 0 … {vocabulary - 1}; encode it with the model's own tokenizer"
        if self.slots(context) > cached:
            needed = self.slots(context)
            return f"needs {needed} tokens of KV cache, which holds {cached}; raise its limit or lower max_new_tokens"
        return self._sampling_complaint()

    def _sampling_complaint(self) -> str | None:
        if self.max_new_tokens < 1:
            return f"asks for max_new_tokens = {self.max_new_tokens}; it must be at least 1"
        if not 0 <= self.temperature < float("inf"):
            return f"has temperature = {self.temperature}; it must be 0 or a positive number"
        if not 0 < self.top_p <= 1:
            return f"has top_p = {self.top_p}; it must be above 0 and at most 1"
        if b"" in self.stop_strings:
            return "has an empty stop string; leave it out"
        return None


@dataclass(frozen=True)
class Completion:
    """What followed a prompt.

    tokens: all that were produced, a stop token included. text: their bytes up to a stop token or string; empty if the
    engine has no `token_bytes`. log_probabilities: of each token under the model, whatever temperature it was drawn at.
    restored: tokens of the prompt whose keys and values an earlier turn of the conversation left.
    """

    tokens: list[int]
    text: bytes
    reason: Reason
    log_probabilities: list[float] = field(default_factory=list)
    restored: int = 0


@dataclass(frozen=True)
class Produced:
    """One more token of request number `request`; with its last one comes its completion."""

    request: int
    token: int
    completion: Completion | None
