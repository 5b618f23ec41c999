"""Who takes part in the next pass through the model: every sequence that is decoding, then as much prompt as fits.

Iteration-level batching (Orca, OSDI '22) with prompts in chunks, as NanoFlow (arXiv 2408.12757) forms its batches. It
plans by counts alone: passes can be formed before it is known which tokens the earlier ones produce.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from trainers.generation.kv_cache import pages_for
from trainers.generation.length_prediction import LengthPrediction
from trainers.generation.pages import Pages
from trainers.generation.sequence import Sequence
from trainers.generation.tiers.keeping import Forgetting

SPARE = 256
"""Tokens that a sequence gets room for beyond those it has, so that most stay in one stretch of the cache."""


@dataclass(frozen=True)
class Part:
    """Tokens of a sequence, by their positions, that are stored in this pass.

    decoding: it is the newest token alone, all before it are stored. complete: all of the sequence is stored then, so
    that the next token can be told.
    """

    sequence: Sequence
    positions: range
    decoding: bool
    complete: bool


def next_part(sequence: Sequence, most: int) -> Part:
    """Up to `most` tokens that are not stored yet."""
    positions = range(sequence.stored, min(sequence.stored + most, sequence.length))
    return Part(sequence, positions, sequence.decoding, positions.stop == sequence.length)


class Scheduler:
    """Serves sequences in their order, `batch` at a time; a pass takes `pass_tokens` tokens when so many are there.

    together: a sequence has room for all it may need, in consecutive slots, from its beginning to its end. Otherwise
    it is admitted if what it and the others are expected to need fits, and grows; where that was wrong, the youngest
    sequence is put back into the queue. preempted: how often that was. keeping: told of whoever leaves and comes.
    """

    def __init__(
        self,
        sequences: Iterable[Sequence],
        pages: Pages,
        batch: int,
        pass_tokens: int,
        together: bool,
        keeping: Forgetting,
    ) -> None:
        self._waiting = deque(sequences)
        self._running: list[Sequence] = []  # from the oldest to the youngest
        self._pages, self._batch, self._pass_tokens, self._together = pages, batch, pass_tokens, together
        self._keeping, self._lengths = keeping, LengthPrediction()
        self.preempted = 0

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._running)

    def next_pass(self) -> list[Part]:
        """Decoding sequences first, a token each; then prompts, of which the last may be cut. Empty: nobody can go on.

        Pages of who leaves are given on at once: passes run in the order in which they are formed.
        """
        self._retire()
        for sequence in list(self._running):
            self._keep_room(sequence)
        self._admit()
        parts = self._decoding()
        parts += self._prompts(max(self._pass_tokens - len(parts), 1))
        for part in parts:
            part.sequence.store(part.positions.stop)
        return parts

    def abandon(self) -> None:
        """Let go of all."""
        for sequence in self._running:
            sequence.table.release()
        self._running.clear()
        self._waiting.clear()

    def _decoding(self) -> list[Part]:
        return [next_part(sequence, 1) for sequence in self._running if sequence.decoding]

    def _prompts(self, left: int) -> list[Part]:
        """Up to `left` tokens of prompts."""
        parts = []
        for sequence in self._running:
            if left and not sequence.decoding:
                parts.append(next_part(sequence, left))
                left -= len(parts[-1].positions)
        return parts

    def _retire(self) -> None:
        """Let go of sequences that want no pass any more; in the queue, too, may one's end be noticed."""
        for sequence in self._running:
            if sequence.over:
                self._leave(sequence)
        self._running = [sequence for sequence in self._running if not sequence.over]
        self._waiting = deque(sequence for sequence in self._waiting if not sequence.over)

    def _leave(self, sequence: Sequence) -> None:
        self._lengths.learn(len(sequence.completion.tokens) if sequence.completion else sequence.planned)
        self._keeping.finished(sequence)
        sequence.table.release()

    def _keep_room(self, sequence: Sequence) -> None:
        """See to it that the sequence's tokens can be stored, at the cost of younger ones or, at last, of itself."""
        while sequence in self._running and not self._grow(sequence):
            youngest = self._running.pop()
            self._keeping.preempted(youngest)
            youngest.preempt()
            self._waiting.appendleft(youngest)
            self.preempted += 1

    def _grow(self, sequence: Sequence) -> bool:
        needed = sequence.length
        return sequence.table.capacity >= needed or sequence.table.grow(needed, self._spare(sequence))

    def _admit(self) -> None:
        while self._waiting and len(self._running) < self._batch and self._has_room(self._waiting[0]):
            self._running.append(self._waiting.popleft())
            self._keeping.admitted(self._running[-1])

    def _has_room(self, sequence: Sequence) -> bool:
        if self._together:
            return sequence.table.grow_together(sequence.most_slots)
        return self._will_fit(sequence) and sequence.table.grow(sequence.length, self._spare(sequence))

    def _will_fit(self, sequence: Sequence) -> bool:
        """Whether it and those that run are expected to end without preemption; one alone always does."""
        expected = sum(self._still_to_take(each) for each in (*self._running, sequence))
        return not self._running or expected <= self._pages.free

    def _still_to_take(self, sequence: Sequence) -> int:
        """Pages that it is expected to take besides those it has."""
        produced = self._lengths.expected(sequence.planned, sequence.request.max_new_tokens)
        slots = min(len(sequence.request.prompt) + produced - 1, sequence.most_slots)
        return max(0, pages_for(slots) - pages_for(sequence.table.capacity))

    def _spare(self, sequence: Sequence) -> int:
        return min(SPARE, sequence.most_slots - sequence.length)
