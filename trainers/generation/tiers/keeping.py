"""What becomes of keys and values that leave the cache: forgotten, or kept in a tier until their tokens come again.

Out of the cache they are gathered into one piece, and scattered to their pages on their way back: copies are long that
way, and a tier knows nothing of pages.
"""

from concurrent.futures import Executor, Future, wait
from itertools import count

from trainers.generation.kv_cache import KVCache
from trainers.generation.sequence import Sequence
from trainers.generation.tiers.kept import Kept
from trainers.generation.tiers.tiers import Tiers

_numbers = count()


class Forgetting:
    """Nothing is kept: what is wanted again is computed again."""

    def finished(self, sequence: Sequence) -> None:
        """It leaves its room for good."""

    def preempted(self, sequence: Sequence) -> None:
        """It leaves its room and will come back."""

    def admitted(self, sequence: Sequence) -> None:
        """It has got room."""

    def check(self) -> None:
        """Raise what went wrong on the way, in another thread."""

    def end(self) -> None:
        """Nobody comes back any more."""


class Keeping(Forgetting):
    """worker: runs passes and these moves in the order in which they are handed over, so that room is given on at once.

    model: the fingerprint of the weights; what other weights computed is never brought back.
    """

    def __init__(self, cache: KVCache, tiers: Tiers, worker: Executor, model: str) -> None:
        self._cache, self._tiers, self._worker, self._model = cache, tiers, worker, model
        self._preempted: dict[Sequence, str] = {}
        self._leaving: dict[str, Future[None]] = {}
        self._coming: list[Future[None]] = []

    def finished(self, sequence: Sequence) -> None:
        if sequence.request.conversation is not None:
            self._leave(sequence, _conversation(sequence))

    def preempted(self, sequence: Sequence) -> None:
        if sequence.stored:
            self._preempted[sequence] = f"preempted {next(_numbers)}"
            self._leave(sequence, self._preempted[sequence])

    def admitted(self, sequence: Sequence) -> None:
        """Store what is kept of its first tokens, so that only the others are computed."""
        if sequence in self._preempted:
            name = self._preempted.pop(sequence)
            self._come(sequence, name)
            self._tiers.discard(name)
        elif sequence.request.conversation is not None:
            sequence.restored = self._come(sequence, _conversation(sequence))

    def check(self) -> None:
        for name in [name for name, move in self._leaving.items() if move.done()]:
            self._leaving.pop(name).result()
        done = [move for move in self._coming if move.done()]
        self._coming = [move for move in self._coming if move not in done]
        for move in done:
            move.result()

    def end(self) -> None:
        wait([*self._leaving.values(), *self._coming])
        for name in self._preempted.values():
            self._tiers.discard(name)
        self.check()

    def _leave(self, sequence: Sequence, name: str) -> None:
        tokens, places = tuple(sequence.tokens[: sequence.stored]), sequence.table.places(0, sequence.stored)
        self._leaving[name] = self._worker.submit(self._gather, name, tokens, places)

    def _come(self, sequence: Sequence, name: str) -> int:
        """Returns how many tokens come back. The newest one is always computed: what follows is told by it."""
        if name in self._leaving:
            self._leaving.pop(name).result()
        kept = self._tiers.get(name)
        if kept is None or kept.model != self._model:
            return 0
        common = kept.in_common(sequence.tokens[: sequence.length - 1])
        if common:
            self._coming.append(self._worker.submit(self._scatter, kept, sequence.table.places(0, common)))
            sequence.restore(common)
        return common

    def _gather(self, name: str, tokens: tuple[int, ...], places: list[range]) -> None:
        self._tiers.put(name, Kept(tokens, *self._cache.gather(places), self._model))

    def _scatter(self, kept: Kept, places: list[range]) -> None:
        self._cache.scatter(places, kept.keys, kept.values)


def _conversation(sequence: Sequence) -> str:
    return f"conversation {sequence.request.conversation}"
