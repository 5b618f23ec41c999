"""Generation for many prompts at once: continuous batches over a paged key-value cache of bounded memory."""

from collections.abc import Callable, Generator, Iterable, Iterator
from collections.abc import Sequence as Listed
from contextlib import closing, contextmanager

import torch
from torch import Tensor, nn

from trainers.errors import GenerationError
from trainers.generation.board import Board
from trainers.generation.cache_plan import CachePlan, available_memory
from trainers.generation.counts import Counts
from trainers.generation.formation import Formation, outcomes, worker_for
from trainers.generation.kv_cache import KVCache
from trainers.generation.model_pass import Choose, FormedPass, Outcome, Passes
from trainers.generation.requests import Completion, Produced, Request
from trainers.generation.sampling import choose
from trainers.generation.scheduler import Scheduler
from trainers.generation.sequence import Sequence, TokenBytes
from trainers.generation.sparse_attention.full import Full
from trainers.generation.sparse_attention.method import Method
from trainers.generation.tiers.fingerprint import Fingerprint
from trainers.generation.tiers.keeping import Forgetting, Keeping
from trainers.generation.tiers.tiers import Tiers
from trainers.models.transformer import Transformer


class Engine:
    """Continues prompts with a model, which is in evaluation mode and without gradients meanwhile.

    context: the most tokens of a sequence that the model looks at. batch: sequences decoded at a time; others wait.
    cache_bytes: limit of the key-value cache; None: `batch` sequences of `context` tokens. method: what a decoding step
    reads of the cache. pass_tokens: tokens a pass through the model, if so many are there; long prompts are cut to it.
    token_bytes: the bytes that a token stands for. formation: "asynchronous" forms each pass while the one before it
    runs in a thread of its own, "synchronous" afterwards; `counts` has what was done. tiers: where keys and values of
    preempted sequences wait and those of conversations stay; without, they are computed again.

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
        formation: Formation = "asynchronous",
        tiers: Tiers | None = None,
    ) -> None:
        if tiers and method and not isinstance(method, Full):
            raise GenerationError("Sparse methods order the cache their own way; give the engine a method or tiers.")
        self.plan = CachePlan(
            len(model.blocks), model.key_value_heads, model.head_width, batch, context, limit=cache_bytes
        )
        device = model.embedding.weight.device
        self.plan.check(torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else available_memory())
        self._cache = KVCache(self.plan, device)
        self._model, self._context, self._batch = model, context, batch
        self._pass_tokens, self._token_bytes = pass_tokens, token_bytes
        self._worker = worker_for(formation)
        self._tiers, self._fingerprint = tiers, Fingerprint(model)
        self.counts = Counts()
        self._method = None if isinstance(method, Full) else method  # full attention needs no reader a sequence

    def generate(
        self, requests: Iterable[Request], progress: Callable[[Produced], None] = lambda _: None
    ) -> list[Completion]:
        """The completion of each request, in their order; `progress` sees every token as it comes."""
        completions = {}
        with closing(self.stream(requests)) as stream:
            for produced in stream:
                progress(produced)
                if produced.completion:
                    completions[produced.request] = produced.completion
        return [completions[number] for number in range(len(completions))]

    def stream(self, requests: Iterable[Request]) -> Generator[Produced, None, None]:
        """Every token as it comes. Raises GenerationError, before any, for a request that can't be served."""
        sequences = [self._sequence(number, request) for number, request in enumerate(requests)]
        return self._stream(sequences)

    def predictions(self, prompt: Listed[int], continuation: Listed[int]) -> Tensor:
        """Log-probabilities (len(continuation), vocabulary) of what follows, as decoding meets it.

        The first row comes of the prompt, the others are decoded by the method with the continuation's tokens put in.
        """
        sequence = self._sequence(0, Request(tuple(prompt), max_new_tokens=len(continuation)))
        tokens = iter(torch.tensor(continuation, device=self._cache.keys.device).split(1))
        return torch.cat(
            [outcome.logits.log_softmax(-1) for outcome in self._outcomes([sequence], lambda *_: next(tokens))]
        )

    def score(self, prompt: Listed[int], continuation: Listed[int]) -> Tensor:
        """Log-probability (len(continuation),) of each token of a continuation given those before it."""
        tokens = torch.tensor(continuation, device=self._cache.keys.device)
        return self.predictions(prompt, continuation).gather(1, tokens[:, None])[:, 0]

    def _sequence(self, number: int, request: Request) -> Sequence:
        vocabulary = self._model.embedding.num_embeddings
        request.check(f"Prompt {number + 1}", vocabulary, self._context, self.plan.tokens)
        if request.stop_strings and self._token_bytes is None:
            raise ValueError("Stop strings need an engine that is given token_bytes.")
        if request.conversation is not None and self._tiers is None:
            raise ValueError("Conversations need an engine that is given tiers.")
        return Sequence(number, request, self._cache, self._context)

    def _stream(self, sequences: list[Sequence]) -> Generator[Produced, None, None]:
        for outcome in self._outcomes(sequences, choose):
            for sequence, token, log_probability in outcome.told():
                if sequence.completion:
                    self.counts.unseen += 1
                    continue
                sequence.accept(token, log_probability, self._token_bytes)
                yield Produced(sequence.number, token, sequence.completion)

    def _outcomes(self, sequences: list[Sequence], choose: Choose) -> Iterator[Outcome]:
        """What passes through the model tell, until every sequence has come to its end."""
        together = self._method is not None
        keeping = self._keeping()
        scheduler = Scheduler(sequences, self._cache.pages, self._batch, self._pass_tokens, together, keeping)
        passes = Passes(self._model, self._cache, Board(sequences, self._cache.keys.device), self._method, choose)

        def form() -> FormedPass | None:
            keeping.check()
            parts = scheduler.next_pass()
            self.counts.passes += bool(parts)
            self.counts.tokens += sum(len(part.positions) for part in parts)
            return passes.form(parts) if parts else None

        try:
            with _evaluation(self._model):
                self._worker.submit(torch.set_num_threads, torch.get_num_threads())
                yield from outcomes(form, passes, self._worker)
            if scheduler.busy:  # each request fits into the whole cache, so somebody else has it
                raise RuntimeError("Another stream of this engine holds the cache; end that one first.")
        finally:
            self.counts.preempted += scheduler.preempted
            scheduler.abandon()
            keeping.end()

    def _keeping(self) -> Forgetting:
        if self._tiers is None:
            return Forgetting()
        return Keeping(self._cache, self._tiers, self._worker, self._fingerprint())


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
