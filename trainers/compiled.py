"""Compilation of numeric loops: numba, kept on disk beside the source (or in the user's cache folder)."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])

REORDERED = {"reassoc", "contract", "arcp", "nsz"}
"""Sums may be taken in any order, as vector units do; infinities keep their meaning."""


def compiled(function: Function) -> Function:
    """The function as machine code that lets go of the interpreter; compiled on the first call with given types."""
    return cast(Function, njit(cache=True, nogil=True, fastmath=REORDERED)(function))
