"""Room for a gang: a placement group with a bundle for every rank, or a sentence on why the cluster has none."""

from dataclasses import dataclass
from time import monotonic
from typing import Any

from orchestrator.cluster.connection import NoRoomError, check_capacity
from orchestrator.cluster.job_spec import JobSpec


@dataclass(frozen=True)
class Room:
    """A placement group. lent: whether it belongs to the actor that asks, a trial of Ray Tune, and stays with it."""

    group: Any
    lent: bool = False

    def bundle(self, rank: int) -> int:
        """Which bundle a rank takes; -1, any that has room, where several gangs may share the group."""
        return -1 if self.lent else rank

    def give_back(self) -> None:
        """Let others have it."""
        import ray

        if not self.lent:
            ray.util.remove_placement_group(self.group)


def place(spec: JobSpec, name: str) -> Room:
    """Room for every rank. Raises NoRoomError at once if no node can ever give it."""
    import ray

    if lent := ray.util.get_current_placement_group():
        return Room(lent, lent=True)
    _check(spec)
    group = ray.util.placement_group(bundles(spec), strategy="PACK", name=name)
    try:
        _wait(group, spec)
    except BaseException:
        ray.util.remove_placement_group(group)
        raise
    return Room(group)


def _wait(group: Any, spec: JobSpec) -> None:
    """Until the group has its place. Raises NoRoomError."""
    import ray

    begin = monotonic()
    while not group.wait(timeout_seconds=0.5):
        resources = _check(spec)  # again, for a node may be lost meanwhile
        if ray.util.placement_group_table(group)["stats"]["scheduling_state"] == "INFEASIBLE":
            raise NoRoomError(
                f"cluster.workers={spec.world_size} need {spec.cpus:g} CPU and {spec.gpus:g} GPU each on one node, "
                f"and no node is that large (the cluster's total: {_amounts(resources)}); ask for less a worker"
            )
        if monotonic() - begin > spec.place_seconds:
            raise NoRoomError(
                f"cluster.workers={spec.world_size} found no room within {spec.place_seconds:g} s on a busy cluster, "
                f"free: {_amounts(ray.available_resources())}; wait for other jobs, or ask for less"
            )


def _check(spec: JobSpec) -> dict[str, float]:
    """The cluster's totals, which must hold the ranks."""
    import ray

    resources = {name: float(amount) for name, amount in ray.cluster_resources().items()}
    check_capacity(spec.world_size, spec.cpus, spec.gpus, resources)
    return resources


def bundles(spec: JobSpec) -> list[dict[str, float]]:
    """What each rank needs where it stands."""
    needs = {"CPU": spec.cpus, **({"GPU": spec.gpus} if spec.gpus else {})}
    return [{**needs, pin: 0.001} for pin in spec.pins] or [needs] * spec.world_size


def _amounts(resources: dict[str, float]) -> str:
    return ", ".join(f"{resources[name]:g} {name}" for name in ("CPU", "GPU") if name in resources) or "nothing"
