"""How long sequences will grow, judged by those that have ended: what decides who is admitted to the cache."""

from bisect import bisect_right, insort
from statistics import fmean


class LengthPrediction:
    """Of a sequence that has produced some tokens: the mean length of those that ended later than that."""

    def __init__(self) -> None:
        self._lengths: list[int] = []  # from the shortest to the longest

    def learn(self, length: int) -> None:
        """A sequence has ended after `length` tokens."""
        insort(self._lengths, length)

    def expected(self, produced: int, most: int) -> int:
        """Tokens that it will have produced in the end, at most `most`; that many if nobody ended later."""
        longer = self._lengths[bisect_right(self._lengths, produced) :]
        return min(round(fmean(longer)), most) if longer else most
