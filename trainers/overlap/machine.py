"""The machine that a profile is of, in one line: what was measured on another one means nothing here."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import torch


def fingerprint() -> str:
    """Processor, cores, torch's version and this process's threads; the GPU, where there is one."""
    gpu = [torch.cuda.get_device_name()] if torch.cuda.is_available() else []
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parts = [processor(), f"{cores} cores", f"torch {torch.__version__}", f"{torch.get_num_threads()} threads", *gpu]
    return ", ".join(parts)


def processor() -> str:
    """Its model's name."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
