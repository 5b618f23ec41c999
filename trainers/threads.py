"""Python threads for compiled code that lets go of the interpreter.

numba's own parallel loops wait by spinning (OpenMP), which costs more than they win beside torch's pool on a busy
machine, or must not be entered from two threads (workqueue).
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import torch

LEAST_WORK = 1 << 19
"""Multiply-adds that take about as long as handing them to another thread."""


def shares_of(work: int) -> int:
    """Into how many shares work, in multiply-adds, is worth cutting; at most as many as torch has threads."""
    return max(1, min(torch.get_num_threads(), work // LEAST_WORK))


def in_shares(function: Callable[[int], object], shares: int) -> None:
    """function(0) … function(shares - 1), side by side; the first in this thread. Raises what one of them raised."""
    others = [_pool().submit(function, share) for share in range(1, shares)]
    function(0)
    for other in others:
        other.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), "compiled")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child has none of the threads
