"""Whether values that came out of a file are of the types that their dataclasses declare."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

_MOST = 2**63  # what no count of a run comes near


def check_types(value: object) -> None:
    """TypeError naming the first field of a dataclass, or of one within it, that holds what it does not declare."""
    kind: Any = type(value)
    for name, declared in _hints(kind).items():
        if not _fits(getattr(value, name), declared):
            raise TypeError(f"{type(value).__name__}.{name} is no {declared}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, declared: Any) -> bool:
    if declared is Any:
        return True
    if declared in (int, float):
        return type(value) is float is declared or (type(value) is int and abs(value) < _MOST)
    outer, inner = get_origin(declared), get_args(declared)
    if outer in (UnionType, Union):
        return any(_fits(value, each) for each in inner)
    if outer is list:
        return isinstance(value, list) and all(_fits(each, inner[0]) for each in value)
    if outer is tuple:
        return _fits_tuple(value, inner)
    if outer is not None and issubclass(outer, Mapping):
        return isinstance(value, Mapping) and all(_fits(k, inner[0]) and _fits(v, inner[1]) for k, v in value.items())
    if dataclasses.is_dataclass(value):
        check_types(value)
    return isinstance(value, declared) and (declared is bool or type(value) is not bool)


def _fits_tuple(value: Any, inner: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple | list):
        return False
    if inner[-1] is ...:
        return all(_fits(each, inner[0]) for each in value)
    return len(value) == len(inner) and all(map(_fits, value, inner))
