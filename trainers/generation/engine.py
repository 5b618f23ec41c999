"""Generation for many prompts at once: continuous batches over a paged key-value cache of bounded memory."""

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Listed
from contextlib import contextmanager
from itertools import accumulate

import torch
from torch import Tensor, nn

from trainers.generation.attention import PassAttention
from trainers.generation.cache_plan import CachePlan, available_memory
from trainers.generation.kv_cache import KVCache
from trainers.generation.requests import Completion, Produced, Request
from trainers.generation.sampling import choose
from trainers.generation.scheduler import Part, Scheduler
from trainers.generation.sequence import Sequence, TokenBytes
from trainers.generation.sparse_attention.full import Full
from trainers.generation.sparse_attention.method import LayerStore, Method
from trainers.models.transformer import Transformer


class Engine:
    """Continues prompts with a model, which is in evaluation mode and without gradients meanwhile.

    context: the most tokens of a sequence that the model looks at. batch: sequences decoded at a time; others wait.
    cache_bytes: limit of the key-value cache; None: `batch` sequences of `context` tokens. method: what a decoding step
    reads of the cache. pass_tokens: tokens a pass through the model, if so many are there; long prompts are cut to it.
    token_bytes: the bytes that a token stands for.

    `plan.statement()` says what memory the cache takes. Raises GenerationError if that is not there. Greedy tokens are
    the same in any batch and order, unless two logits are nearer to each other than float32 rounds: sums of a batch are
    taken in another order than those of one sequence.
    """

    def __init__(
        self,
        model: Transformer,
        context: int,
        batch: int = 16,
        cache_bytes: int | None = None,
        method: Method | None = None,
        pass_tokens: int = 512,
        token_bytes: TokenBytes | None = None,
    ) -> None:
        self.plan = CachePlan(
            len(model.blocks), model.key_value_heads, model.head_width, batch, context, limit=cache_bytes
        )
        device = model.embedding.weight.device
        self.plan.check(torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else available_memory())
        self._cache = KVCache(self.plan, device)
        self._model, self._context, self._batch = model, context, batch
        self._pass_tokens, self._token_bytes = pass_tokens, token_bytes
        self._method = None if isinstance(method, Full) else method  # full attention needs no reader a sequence

    def generate(
        self, requests: Iterable[Request], progress: Callable[[Produced], None] = lambda _: None
    ) -> list[Completion]:
        """The completion of each request, in their order; `progress` sees every token as it comes."""
        completions = {}
        for produced in self.stream(requests):
            progress(produced)
            if produced.completion:
                completions[produced.request] = produced.completion
        return [completions[number] for number in range(len(completions))]

    def stream(self, requests: Iterable[Request]) -> Iterator[Produced]:
        """Every token as it comes. Raises GenerationError, before any, for a request that can't be served."""
        sequences = [self._sequence(number, request) for number, request in enumerate(requests)]
        return self._stream(sequences)

    def predictions(self, prompt: Listed[int], continuation: Listed[int]) -> Tensor:
        """Log-probabilities (len(continuation), vocabulary) of what follows, as decoding meets it.

        The first row comes of the prompt, the others are decoded by the method with the continuation's tokens put in.
        """
        sequence = self._sequence(0, Request(tuple(prompt), max_new_tokens=len(continuation)))
        rows: list[Tensor] = []
        for _, logits in self._passes([sequence]):
            sequence.accept(continuation[len(rows)])
            rows.append(logits[0].log_softmax(-1))
        return torch.stack(rows)

    def score(self, prompt: Listed[int], continuation: Listed[int]) -> Tensor:
        """Log-probability (len(continuation),) of each token of a continuation given those before it."""
        tokens = torch.tensor(continuation, device=self._cache.keys.device)
        return self.predictions(prompt, continuation).gather(1, tokens[:, None])[:, 0]

    def _sequence(self, number: int, request: Request) -> Sequence:
        vocabulary = self._model.embedding.num_embeddings
        request.check(f"Prompt {number + 1}", vocabulary, self._context, self.plan.tokens)
        if request.stop_strings and self._token_bytes is None:
            raise ValueError("Stop strings need an engine that is given token_bytes.")
        return Sequence(number, request, self._cache, self._context)

    def _stream(self, sequences: list[Sequence]) -> Iterator[Produced]:
        for ready, logits in self._passes(sequences):
            tokens = choose(logits, ready)
            log_probabilities = _log_probabilities(logits, tokens, ready)
            for sequence, token, log_probability in zip(ready, tokens, log_probabilities, strict=True):
                sequence.accept(token, log_probability, self._token_bytes)
                yield Produced(sequence.number, token, sequence.completion)

    def _passes(self, sequences: list[Sequence]) -> Iterator[tuple[list[Sequence], Tensor]]:
        """Passes through the model until every sequence is complete: those that want a token, with their logits.

        Whoever takes them has each of these sequences accept a token.
        """
        scheduler = Scheduler(sequences, self._batch, self._pass_tokens, together=self._method is not None)
        try:
            with _evaluation(self._model):
                while scheduler.busy:
                    ready, logits = self._pass(self._parts(scheduler))
                    if ready:
                        yield ready, logits
                    scheduler.retire()
        finally:
            scheduler.abandon()

    def _parts(self, scheduler: Scheduler) -> list[Part]:
        parts = scheduler.next_pass()
        if not parts:  # each request fits into the whole cache, so somebody else has it
            raise RuntimeError("Another stream of this engine holds the cache; end that one first.")
        return parts

    @torch.no_grad()
    def _pass(self, parts: Listed[Part]) -> tuple[list[Sequence], Tensor]:
        """One pass; its sequences whose tokens are all stored now, and the logits of what follows them."""
        device = self._cache.keys.device
        tokens = torch.tensor([token for part in parts for token in part.tokens], device=device)
        positions = torch.tensor([position for part in parts for position in part.positions], device=device)
        attend = PassAttention(self._cache, parts, keep_windows=self._method is not None)
        hidden = self._model.hidden(tokens[None], positions, attend)[0]
        ends = accumulate(len(part.positions) for part in parts)
        lasts = [end - 1 for end, part in zip(ends, parts, strict=True) if part.complete]
        ready = [part.sequence for part in parts if part.complete]
        for part in parts:
            part.sequence.stored = part.positions.stop
        for sequence in ready:
            self._begin_decoding(sequence)
        return ready, self._model.logits(hidden[lasts])

    def _begin_decoding(self, sequence: Sequence) -> None:
        if self._method is not None and not sequence.decoding:
            first = sequence.table.places(0, 1)[0].start
            for layer, window in sorted(sequence.windows.items()):
                store = LayerStore(self._cache.keys[layer], self._cache.values[layer], first, sequence.stored)
                sequence.stores.append(store)
                sequence.readers.append(self._method.reader(layer, store, window))
            sequence.windows.clear()
        sequence.decoding = True


def _log_probabilities(logits: Tensor, tokens: list[int], sequences: list[Sequence]) -> list[float | None]:
    """Of each token in its row, where the request wants it."""
    return [
        float(row.log_softmax(-1)[token]) if sequence.request.log_probabilities else None
        for row, token, sequence in zip(logits, tokens, sequences, strict=True)
    ]


@contextmanager
def _evaluation(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the block; module by module as before afterwards."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
