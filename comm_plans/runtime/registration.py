"""Makes the backend `planned` known to torch, and its groups when torch asks for one."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from comm_plans.errors import PlansError
from comm_plans.runtime.founding import Founding
from comm_plans.runtime.inner_group import inner_group
from comm_plans.runtime.options import PlannedOptions
from comm_plans.runtime.process_group import PlannedGroup
from comm_plans.runtime.routes import Routes
from comm_plans.terminal import note

BACKEND = "planned"


def register() -> None:
    """From now on `torch.distributed.init_process_group("planned")` works."""
    dist.Backend.register_backend(BACKEND, _create, extended_api=True, devices=["cpu", "cuda"])


def _create(about: Any, options: PlannedOptions | None) -> PlannedGroup:
    """A group; called by torch on each of its ranks. about: torch's store, rank, size and timeout of the group."""
    if not isinstance(options, PlannedOptions | None):
        raise PlansError(f"pg_options is a {type(options).__name__}; give comm_plans.runtime.PlannedOptions")
    group = PlannedGroup(about.group_rank, about.group_size)
    inner = inner_group(about.store, about.group_rank, about.group_size, about.timeout, (group,))
    if options is None and _is_part_of_world(about):
        group.equip(inner, Routes.none(f"plans are for all ranks and this group has {about.group_size} of them"), None)
        return group
    founding = Founding(about, options or _of_world())
    routes = founding.routes()
    if about.group_rank == 0:
        note(f"{BACKEND}: {routes.rule}")
    group.equip(inner, routes, founding.equipment() if routes.plans else None)
    return group


def _is_part_of_world(about: Any) -> bool:
    return bool(about.global_ranks_in_group) and about.group_size < dist.get_world_size()


def _of_world() -> PlannedOptions | None:
    """Options of the default group, which further groups of all ranks share."""
    world = dist.group.WORLD if dist.is_initialized() else None
    return world.options if isinstance(world, PlannedGroup) else None
