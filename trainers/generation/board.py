"""All sequences' tokens on the model's device: what one pass chooses the next one reads, whoever has seen it."""

from collections.abc import Sequence as Listed
from itertools import accumulate, chain

import torch
from torch import Tensor

from trainers.generation.scheduler import Part
from trainers.generation.sequence import Sequence


class Board:
    """One line in which every sequence has a stretch: its prompt, and room for all that it may produce."""

    def __init__(self, sequences: Listed[Sequence], device: torch.device) -> None:
        ends = list(accumulate((sequence.most_slots + 1 for sequence in sequences), initial=0))
        self._begins = dict(zip(sequences, ends, strict=False))
        self._tokens = torch.zeros(ends[-1], dtype=torch.int64, device=device)
        for sequence, begin in self._begins.items():
            prompt = torch.tensor(sequence.tokens, device=device)
            self._tokens[begin : begin + len(prompt)] = prompt

    def places(self, parts: Listed[Part]) -> Tensor:
        """Where the parts' tokens are: (tokens,)."""
        ranges = (_moved(part.positions, self._begins[part.sequence]) for part in parts)
        return torch.tensor(list(chain.from_iterable(ranges)), device=self._tokens.device)

    def places_after(self, parts: Listed[Part]) -> Tensor:
        """Where the tokens belong that follow the parts: (parts,)."""
        places = [self._begins[part.sequence] + part.positions.stop for part in parts]
        return torch.tensor(places, dtype=torch.int64, device=self._tokens.device)

    def read(self, places: Tensor) -> Tensor:
        return self._tokens[places]

    def write(self, places: Tensor, tokens: Tensor) -> None:
        self._tokens[places] = tokens


def _moved(positions: range, by: int) -> range:
    return range(positions.start + by, positions.stop + by)
