"""One rank's part of a snapshot on its way to a file, written by a thread of its own while training goes on."""

import shutil
import tempfile
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainers.snapshot import Snapshot

SHARED_FILE = "shared.safetensors"  # what is equal on every rank, written by rank 0


class PartWriting(Thread):
    """Writes a rank's own state, and what all ranks share if it is rank 0.

    folder: where to; None: a folder of this node, for `taken`. trouble: why it failed, in the system's words.
    Nothing may change `part` before it is over.
    """

    def __init__(self, part: "Snapshot", rank: int, folder: Path | None) -> None:
        super().__init__(name="snapshot", daemon=True)
        self._part, self._rank, self._folder = part, rank, folder
        self.trouble: str | None = None
        self.start()

    def run(self) -> None:
        """The thread."""
        try:
            self._folder = self._folder or Path(tempfile.mkdtemp(prefix="snapshot-"))
            if self._rank == 0:
                self._part.shared().write(self._folder / SHARED_FILE)
            self._part.own().write(self._folder / rank_file(self._rank))
        except Exception as error:  # the disk's, or of the library that writes
            self.trouble = str(error) or type(error).__name__

    def taken(self) -> dict[str, bytes]:
        """The files as bytes; they are gone here afterwards."""
        assert self._folder is not None
        files = {path.name: path.read_bytes() for path in self._folder.iterdir()}
        shutil.rmtree(self._folder)
        return files


def rank_file(rank: int) -> str:
    """Name of the file with what belongs to one rank alone."""
    return f"rank-{rank:05d}.safetensors"
