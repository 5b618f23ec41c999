"""Networks and what moves over them: a topology in, a verified communication plan out.

Names load on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comm_plans.cache import PlanCache as PlanCache
    from comm_plans.plan import Plan as Plan
    from comm_plans.solve import solve as solve
    from comm_plans.topology import Topology as Topology

_HOMES = {
    "Plan": "comm_plans.plan",
    "PlanCache": "comm_plans.cache",
    "Topology": "comm_plans.topology",
    "solve": "comm_plans.solve",
}

__all__ = ["Plan", "PlanCache", "Topology", "solve"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'comm_plans' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


class _Package(ModuleType):
    """Python hangs `solve.py` into its package as `solve` once it is imported; here that name is the function's."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
