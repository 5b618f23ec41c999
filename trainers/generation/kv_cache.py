"""The key-value cache: one pool of pages a layer, shared by all sequences; each sequence knows its pages by a table.

Paging is that of vLLM (arXiv 2309.06180), but that a sequence gets consecutive pages wherever they are there: it is
then read as a view.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from trainers.generation.cache_plan import PAGE, CachePlan
from trainers.generation.pages import Pages, Stretch, merged


class KVCache:
    """Keys and values: (layers, key_value_heads, slots, head_width), float32. Memory is taken as slots are used."""

    def __init__(self, plan: CachePlan, device: torch.device) -> None:
        shape = (plan.layers, plan.key_value_heads, plan.pages * PAGE, plan.head_width)
        self.keys = torch.empty(shape, device=device)
        self.values = torch.empty(shape, device=device)
        self.pages = Pages(plan.pages)

    def write(self, layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store keys and values (key_value_heads, tokens, head_width) at slots (tokens,)."""
        self.keys[layer].index_copy_(1, slots, keys)
        self.values[layer].index_copy_(1, slots, values)

    def read(self, layer: int, places: Sequence[range]) -> tuple[Tensor, Tensor]:
        """Keys and values (key_value_heads, tokens, head_width) of these places in order: of one place a view."""
        return _joined(self.keys[layer], places), _joined(self.values[layer], places)

    def gather(self, places: Sequence[range]) -> tuple[Tensor, Tensor]:
        """A copy on the CPU of these places in order: keys and values (layers, key_value_heads, tokens, head_width)."""
        keys, values = (
            torch.cat([pool[:, :, place.start : place.stop] for place in places], 2)
            for pool in (self.keys, self.values)
        )
        return keys.cpu(), values.cpu()

    def scatter(self, places: Sequence[range], keys: Tensor, values: Tensor) -> None:
        """Store the first of what `gather` gave at these places in order; it goes to the device in one piece."""
        count = sum(map(len, places))
        for pool, given in ((self.keys, keys), (self.values, values)):
            parts = given[:, :, :count].to(pool.device).split([len(place) for place in places], 2)
            for place, part in zip(places, parts, strict=True):
                pool[:, :, place.start : place.stop] = part


class PageTable:
    """Where one sequence's tokens are stored, in order."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._stretches: list[Stretch] = []

    @property
    def capacity(self) -> int:
        """Tokens that there is room for."""
        return PAGE * sum(stretch.size for stretch in self._stretches)

    def grow(self, tokens: int, spare: int = 0) -> bool:
        """Make room for `tokens` tokens in all, and for up to `spare` more if there is; False if there isn't enough."""
        wanted = [pages_for(tokens + more) - self.capacity // PAGE for more in (0, spare)]
        if wanted[0] > self._pages.free:
            return False
        end = self._stretches[-1].end if self._stretches else None
        taken = self._pages.take(max(0, min(wanted[1], self._pages.free)), end)
        self._stretches = merged([*self._stretches, *taken])
        return True

    def grow_together(self, tokens: int) -> bool:
        """Make room for `tokens` tokens in consecutive slots; False if no stretch is that long. The table is empty."""
        taken = self._pages.take_together(pages_for(tokens))
        if taken is not None:
            self._stretches = [taken]
        return taken is not None

    def release(self) -> None:
        self._pages.give_back(self._stretches)
        self._stretches = []

    def places(self, begin: int, end: int) -> list[range]:
        """The slots of tokens begin … end - 1."""
        found, passed = [], 0
        for first, size in self._stretches:
            low, high = max(begin - passed, 0), min(end - passed, size * PAGE)
            if low < high:
                found.append(range(first * PAGE + low, first * PAGE + high))
            passed += size * PAGE
        return found


def pages_for(tokens: int) -> int:
    """How many pages hold so many tokens."""
    return -(-tokens // PAGE)


def _joined(pool: Tensor, places: Sequence[range]) -> Tensor:
    parts = [pool[:, place.start : place.stop] for place in places]
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)
