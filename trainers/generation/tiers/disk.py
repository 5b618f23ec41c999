"""The tier on disk: a file for each conversation in one folder, in bounded room, there again for the next process."""

import os
import warnings
from hashlib import sha256
from pathlib import Path

from trainers.errors import GenerationError
from trainers.generation.tiers import kv_file
from trainers.generation.tiers.kept import Kept

_SUFFIX = ".kv"


class DiskTier:
    """Holds at most `limit` bytes in `folder`; what was not asked for the longest leaves first.

    Files have their names by a hash, so that no conversation's name can lead out of the folder. A damaged file is
    removed with one warning, as if it had never been there. Raises GenerationError for a folder that can't be made.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self._limit = folder, limit
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GenerationError(f"{folder} can't be a folder of key-value files ({error}); name another.") from error
        self._make_room(0)

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self._files())

    def put(self, name: str, kept: Kept) -> None:
        """File it, unless it alone is above the limit. A disk that is full costs a warning."""
        self.discard(name)
        if kv_file.size(kept) > self._limit:
            return
        self._make_room(kv_file.size(kept))
        try:
            kv_file.write(self._path(name), kept)
        except OSError as error:
            warnings.warn(f"Keys and values could not be filed in {self._folder}: {error}.", stacklevel=2)

    def get(self, name: str) -> Kept | None:
        path = self._path(name)
        try:
            kept = kv_file.read(path)
            os.utime(path)
            return kept
        except FileNotFoundError:
            return None
        except (kv_file.DamagedError, OSError) as error:
            path.unlink(missing_ok=True)
            warnings.warn(f"{path} is damaged ({error}); its tokens are computed again.", stacklevel=2)
            return None

    def discard(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def _make_room(self, size: int) -> None:
        """Drop the oldest files until `size` more bytes keep to the limit."""
        files = self._files()
        used = sum(path.stat().st_size for path in files)
        for path in files:
            if used + size <= self._limit:
                return
            used -= path.stat().st_size
            path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """From the one used longest ago; those that a killed process left half written are among them."""
        return sorted(self._folder.glob(f"*{_SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)

    def _path(self, name: str) -> Path:
        digest = sha256(name.encode(errors="surrogatepass")).hexdigest()
        return self._folder / f"{digest}{_SUFFIX}"
