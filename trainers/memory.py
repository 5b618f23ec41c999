"""How much memory training has taken here, and how much is left."""

import resource
from math import inf
from pathlib import Path

import torch

_KIB = 1024


def memory(device: torch.device) -> tuple[int, int]:
    """Bytes that training has taken at most so far on its device, and bytes that are free there.

    On the CPU what the process held when this module was loaded does not count. Of a system that does not tell, nothing
    is free.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.max_memory_allocated(device), free + held
    return _most() - _AT_FIRST, int(max(0, min(_free_in_machine(), _free_in_container())))


def _most() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB


def _free_in_machine(told: Path = Path("/proc/meminfo")) -> int:
    lines = told.read_text().splitlines() if told.is_file() else []
    return next((int(line.split()[1]) * _KIB for line in lines if line.startswith("MemAvailable")), 0)


def _free_in_container(group: Path = Path("/sys/fs/cgroup")) -> float:
    """What its limit leaves, files that were read and could be dropped counted as free; infinite without a limit."""
    limit = _text(group / "memory.max")
    if limit in ("", "max"):
        return inf
    kept = dict(line.split() for line in _text(group / "memory.stat").splitlines())
    return int(limit) - int(_text(group / "memory.current")) + int(kept.get("inactive_file", 0))


def _text(path: Path) -> str:
    return path.read_text().strip() if path.is_file() else ""


_AT_FIRST = _most()
