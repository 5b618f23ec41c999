"""What is scored at long context, as numbers and names: checked before anything starts, so no torch in here."""

from dataclasses import dataclass

from trainers.errors import GenerationError
from trainers.generation.cache_plan import CachePlan
from trainers.generation.sparse_attention.settings import check_target

METHODS = ("tactic", "oracle_top_p", "full")
"""Ways to attend that a configuration can choose: by the share of attention mass to be held, or all."""

NEEDLE_CONTEXT = 256
"""Tokens of the shortest context whose half has room for a needle, also where each byte is a token."""


@dataclass(frozen=True)
class LongContextOptions:
    """method: of `METHODS`. target_mass: the share of attention mass that it is to hold, in (0, 1].

    context: tokens of a window, its last `new_tokens` decoded. prompts: windows of the validation split that perplexity
    is taken of, and that samples go on from. needles: depths at which a sentence is hidden, each in a window of half
    and of all of the context. batch: sequences that samples are drawn for at a time.
    """

    method: str = "tactic"
    target_mass: float = 0.9
    context: int = 1024
    prompts: int = 2
    needles: int = 3
    new_tokens: int = 64
    batch: int = 4

    def check(self) -> None:
        """Raise GenerationError for options that can't be met, whatever the model."""
        if self.method not in METHODS:
            raise _refused("method", self.method, " or ".join(METHODS))
        check_target(self.target_mass)
        for name, least in {"context": 3, "prompts": 1, "needles": 0, "new_tokens": 1, "batch": 1}.items():
            if getattr(self, name) < least:
                raise _refused(name, getattr(self, name), f"at least {least}")
        if self.new_tokens > self.context - 2:
            raise _refused("new_tokens", self.new_tokens, f"at most context - 2 = {self.context - 2}")
        if self.needles and self.context < NEEDLE_CONTEXT:
            raise _refused("context", self.context, f"at least {NEEDLE_CONTEXT} to hide needles in, or needles=0")

    def check_held_out(self, tokens: int) -> None:
        """Raise GenerationError if a validation split of so many tokens holds no window."""
        if tokens < self.context:
            raise GenerationError(
                f"evaluation.long_context.context is {self.context}, and the validation split has {tokens} tokens: "
                "lower it, or give more text by task.data."
            )

    @property
    def stored(self) -> int:
        """Tokens of all prompts: windows for perplexity and for samples, needles in half and in all of the context."""
        return 2 * self.prompts * self.context + self.needles * (self.context + self.context // 2)

    def cache(self, layers: int, key_value_heads: int, head_width: int) -> CachePlan:
        """What is stored at a time, at most: the batch, or a prompt and the copy that is decoded."""
        return CachePlan(layers, key_value_heads, head_width, max(2, self.batch), self.context)


def _refused(name: str, value: object, allowed: str) -> GenerationError:
    return GenerationError(f"evaluation.long_context.{name} is {value}, and must be {allowed}.")
