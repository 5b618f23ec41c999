"""One input read under watch: in bounded time and memory, without a trace outside its folder, refused in a sentence."""

import os
import re
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

SECONDS = 5.0  # of computing that one input may take
MEMORY = 1024**3  # bytes that reading may take besides what there is
LONGEST = 3000  # characters of a sentence; it may hold a path
WRITES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.link", "os.chmod", "os.truncate")
NEVER = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect", "pickle.find_class")
UNPRINTABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")

_inside: Path | None = None  # the folder that may be written to while an input is being read
_deeds: list[str] = []


class Hang(BaseException):
    """Not an Exception, so that no reader takes it for one of its own."""


def defect(read: Callable[[], object], refusals: tuple[type[Exception], ...], folder: Path) -> str | None:
    """What is wrong with how an input was read; None for a value, or a refusal in one sentence."""
    try:
        with _watched(folder):
            read()
    except refusals as error:
        found = _fault_of(str(error))
    except Hang:
        found = f"took more than {SECONDS:.0f} s"
    except MemoryError:
        found = f"took more than {MEMORY >> 20} MB"
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        found = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}: {str(error)[:120]!r}"
    else:
        found = None
    return f"did {_deeds[0]}" if _deeds else found


def bound_memory() -> None:
    """From now on this process may take so much more memory, and no more."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))


def _fault_of(sentence: str) -> str | None:
    if not sentence.strip() or len(sentence) > LONGEST:
        return f"a refusal of {len(sentence)} characters"
    if UNPRINTABLE.search(sentence):
        return f"a refusal with control characters: {sentence[:120]!r}"
    return None


@contextmanager
def _watched(folder: Path) -> Iterator[None]:
    global _inside
    _deeds.clear()
    before = signal.signal(signal.SIGVTALRM, _hang)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    _inside = folder
    try:
        yield
    finally:
        _inside = None
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _hang(_number: int, _frame: FrameType | None) -> None:
    raise Hang


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    """What Python tells of before it does it."""
    if _inside is None:
        return
    if event in NEVER:
        _deeds.append(f"{event}{arguments!r:.120}")
    elif event in WRITES or (event == "open" and _writes(arguments)):
        path = arguments[0]
        if not isinstance(path, int) and not _harmless(Path(os.fsdecode(path)).absolute(), _inside):
            _deeds.append(f"{event} {path!r:.120}")


def _harmless(path: Path, inside: Path) -> bool:
    """What lies in the folder, and what Python and numba keep of code that they have compiled."""
    return path.is_relative_to(inside) or "__pycache__" in path.parts


def _writes(arguments: tuple[Any, ...]) -> bool:
    _path, mode, flags = arguments
    return bool(set(mode or "") & set("wax+")) or bool((flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


sys.addaudithook(_heard)
