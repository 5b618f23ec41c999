"""What a link is worth in GB/s: as a person says, else as the text states, else as assumed, which is remarked upon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from comm_plans.errors import TopologyError, listed
from comm_plans.exact import exact
from comm_plans.topology import MOST_BANDWIDTH


@dataclass(frozen=True)
class Rate:
    """GB/s one way of what the input calls `word`; `why` is empty where the input itself states the figure.

    A figure for `family` counts `lanes` times: one lane of NV12, or any PCIe crossing.
    """

    word: str
    value: Fraction
    why: str = ""
    family: str = ""
    lanes: int = 1


class Rates:
    """Settles rates one after the other and remembers which of them were assumed."""

    def __init__(self, said: Mapping[str, Fraction]) -> None:
        self._said = {word.casefold(): value for word, value in said.items()}
        self._unused = {word.casefold(): word for word in said}
        self._met: set[str] = set()
        self._assumed: dict[Rate, None] = {}

    def settled(self, rate: Rate) -> Fraction:
        """GB/s of the rate: what a person said of its word or family, else its own figure."""
        self._met |= {rate.word, rate.family or rate.word}
        for word, lanes in ((rate.word, 1), (rate.family, rate.lanes)):
            if word.casefold() in self._said:
                self._unused.pop(word.casefold(), None)
                return self._said[word.casefold()] * lanes
        if rate.why:
            self._assumed[rate] = None
        return rate.value

    def remarks(self) -> list[str]:
        """A sentence for each figure that was assumed. Raises TopologyError for a word said in vain."""
        for word in self._unused.values():
            met = listed(sorted(self._met, key=lambda name: (len(name), name))) or "none"
            raise TopologyError(f"--bandwidth {word[:40]}: nothing here goes by that word; the words are {met}")
        alike: dict[tuple[Fraction, str, str], list[str]] = {}
        for rate in self._assumed:
            alike.setdefault((rate.value, rate.why, rate.family), []).append(rate.word)
        return [
            f"assuming {float(value):g} GB/s for {listed(words)}: {why} (--bandwidth {_settable(words, family)}=GB/S)"
            for (value, why, family), words in alike.items()
        ]


def _settable(words: list[str], family: str) -> str:
    return words[0] if len(words) == 1 else family


def said_bandwidths(settings: Iterable[str]) -> dict[str, Fraction]:
    """Read `NV12=300`, `NIC=25`. Raises TopologyError for anything but a word and GB/s above zero."""
    said = {}
    for setting in settings:
        word, _, figure = setting.rpartition("=")
        try:
            said[word] = exact(figure)
        except ValueError:
            said[word] = Fraction(0)
        if not word or not 0 < said[word] <= MOST_BANDWIDTH:
            raise TopologyError(f"--bandwidth {setting[:60]!r} is not WORD=GB/S; write it as NV12=300 or NIC=25")
    return said
