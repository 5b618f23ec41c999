"""Compilation of hot loops: numba, once per machine, kept on disk beside the source (or in the user's cache folder)."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function compiled to machine code on its first call; call it with one set of argument types only."""
    return cast(Function, njit(cache=True)(function))
