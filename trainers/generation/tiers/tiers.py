"""Where keys and values go that the cache has no room for: memory first, then disk; each bounded, the oldest leave."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from trainers.generation.tiers.disk import DiskTier
from trainers.generation.tiers.host import HostTier
from trainers.generation.tiers.kept import Kept


class Tiers:
    """At most `host_bytes` in memory, and besides what is on its way to the disk; `disk_bytes` in `folder`, if given.

    What leaves memory is filed by a thread of its own, one batch at a time: whoever puts more meanwhile waits. Close
    it, or use it as a context, to file the rest, so that another process can go on.
    """

    def __init__(self, host_bytes: int, folder: Path | None = None, disk_bytes: int = 0) -> None:
        self._host = HostTier(host_bytes)
        self._disk = DiskTier(folder, disk_bytes) if folder else None
        self._lock = Lock()
        self._thread = ThreadPoolExecutor(1, "filing")
        self._filing: Future[None] | None = None

    def put(self, name: str, kept: Kept) -> None:
        """Keep it in place of an older one of this name."""
        with self._lock:
            self._file(self._host.put(name, kept))

    def get(self, name: str) -> Kept | None:
        """What was put under this name, if it is still there; it counts as used now."""
        with self._lock:
            self._wait()
            return self._host.get(name) or (self._disk.get(name) if self._disk else None)

    def discard(self, name: str) -> None:
        """Nothing is kept under this name then."""
        with self._lock:
            self._wait()
            self._host.discard(name)
            if self._disk:
                self._disk.discard(name)

    def close(self) -> None:
        """File what memory holds; it can be used on."""
        with self._lock:
            self._file(self._host.clear() if self._disk else [])
            self._wait()

    def __enter__(self) -> "Tiers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _file(self, leaving: list[tuple[str, Kept]]) -> None:
        if self._disk and leaving:
            self._wait()
            self._filing = self._thread.submit(_put_all, self._disk, leaving)

    def _wait(self) -> None:
        """Until what was on its way is filed. Raises what went wrong there."""
        if self._filing:
            self._filing.result()
            self._filing = None


def _put_all(disk: DiskTier, leaving: list[tuple[str, Kept]]) -> None:
    for name, kept in leaving:
        disk.put(name, kept)
