"""Who takes part in the next pass through the model: every sequence that is decoding, then as much prompt as fits.

Iteration-level batching (Orca, OSDI '22) with prompts in chunks, as NanoFlow (arXiv 2408.12757) forms its batches.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from trainers.generation.sequence import Sequence

SPARE = 256
"""Tokens that a sequence gets room for beyond those it has, so that most stay in one stretch of the cache."""


@dataclass(frozen=True)
class Part:
    """Tokens of a sequence, by their positions, that are stored in this pass."""

    sequence: Sequence
    positions: range

    @property
    def tokens(self) -> list[int]:
        return self.sequence.tokens[self.positions.start : self.positions.stop]

    @property
    def complete(self) -> bool:
        """Whether all of the sequence is stored then, so that the next token can be told."""
        return self.positions.stop == len(self.sequence.tokens)


def next_part(sequence: Sequence, most: int) -> Part:
    """Up to `most` tokens that are not stored yet."""
    return Part(sequence, range(sequence.stored, min(sequence.stored + most, len(sequence.tokens))))


class Scheduler:
    """Serves sequences in their order, `batch` at a time; a pass takes `pass_tokens` tokens when so many are there.

    together: a sequence has room for all it may need, in consecutive slots, from its beginning to its end. Otherwise
    it grows, and if there is no room the youngest sequence is put back into the queue.
    """

    def __init__(self, sequences: Iterable[Sequence], batch: int, pass_tokens: int, together: bool) -> None:
        self._waiting = deque(sequences)
        self._running: list[Sequence] = []  # from the oldest to the youngest
        self._batch, self._pass_tokens, self._together = batch, pass_tokens, together

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._running)

    def next_pass(self) -> list[Part]:
        """Decoding sequences first, a token each; then prompts, of which the last may be cut."""
        for sequence in list(self._running):
            self._keep_room(sequence)
        self._admit()
        parts = [next_part(sequence, 1) for sequence in self._running if sequence.decoding]
        left = max(self._pass_tokens - len(parts), 1)
        for sequence in self._running:
            if left and not sequence.decoding:
                parts.append(next_part(sequence, left))
                left -= len(parts[-1].positions)
        return parts

    def retire(self) -> None:
        """Let go of sequences that have come to their end."""
        for sequence in self._running:
            if sequence.completion:
                sequence.table.release()
        self._running = [sequence for sequence in self._running if not sequence.completion]

    def abandon(self) -> None:
        """Let go of all."""
        for sequence in self._running:
            sequence.table.release()
        self._running.clear()
        self._waiting.clear()

    def _keep_room(self, sequence: Sequence) -> None:
        """See to it that the sequence's tokens can be stored, at the cost of younger ones or, at last, of itself."""
        while sequence in self._running and not self._grow(sequence):
            youngest = self._running.pop()
            youngest.preempt()
            self._waiting.appendleft(youngest)

    def _grow(self, sequence: Sequence) -> bool:
        needed = len(sequence.tokens)
        return sequence.table.capacity >= needed or sequence.table.grow(needed, self._spare(sequence))

    def _admit(self) -> None:
        while self._waiting and len(self._running) < self._batch and self._has_room(self._waiting[0]):
            self._running.append(self._waiting.popleft())

    def _has_room(self, sequence: Sequence) -> bool:
        if self._together:
            return sequence.table.grow_together(sequence.most_slots)
        return sequence.table.grow(len(sequence.tokens), self._spare(sequence))

    def _spare(self, sequence: Sequence) -> int:
        return min(SPARE, sequence.most_slots - len(sequence.tokens))
