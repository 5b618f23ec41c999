"""The tier in memory: the conversations used last, in bounded room."""

from collections import OrderedDict

from trainers.generation.tiers.kept import Kept


class HostTier:
    """Holds at most `limit` bytes; what was not asked for the longest leaves first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[str, Kept] = OrderedDict()  # from the one used longest ago
        self.bytes = 0

    def put(self, name: str, kept: Kept) -> list[tuple[str, Kept]]:
        """Hold it in place of an older one of its name; returns who has to leave, which may be itself."""
        self.discard(name)
        self._kept[name] = kept
        self.bytes += kept.bytes
        if kept.bytes > self._limit:
            return [(name, self._pop(name))]
        leaving = []
        while self.bytes > self._limit:
            oldest = next(iter(self._kept))
            leaving.append((oldest, self._pop(oldest)))
        return leaving

    def get(self, name: str) -> Kept | None:
        if name in self._kept:
            self._kept.move_to_end(name)
        return self._kept.get(name)

    def discard(self, name: str) -> None:
        if name in self._kept:
            self._pop(name)

    def clear(self) -> list[tuple[str, Kept]]:
        """Everything, from the one used longest ago; nothing is held then."""
        return [(name, self._pop(name)) for name in list(self._kept)]

    def _pop(self, name: str) -> Kept:
        kept = self._kept.pop(name)
        self.bytes -= kept.bytes
        return kept
