"""Experts that come with the project, against the workers that hold them and the cluster they are planned for."""

from math import inf
from pathlib import Path
from typing import Any

from comm_plans.all_to_all.cluster import Cluster
from comm_plans.all_to_all.cluster_file import cluster_document, cluster_from, read_cluster
from comm_plans.errors import PlansError
from orchestrator.errors import UserError

Json = dict[str, Any]

BY_TOPOLOGY = "topology"  # as a cluster: the one that `topology=` describes
_TASK = "trainers.tasks.moe_language_model.MoeLanguageModel"
_MODEL = "trainers.models.moe_transformer.MoeTransformer"


def settle_experts(task: Json, workers: int, topology: str | None) -> None:
    """Check the numbers of experts, and put the keys of a cluster in the place of its file: workers may not see it.

    topology: a file or fabric on whose hosts the workers will stand, if that is known. UserError names the wrong key.
    """
    if task["_target_"] == _TASK:
        _check_balance(task["balance"])
        if task["cluster"] is not None:
            task["cluster"] = cluster_document(_cluster(task["cluster"], workers, topology))
        if task["model"]["_target_"] == _MODEL:
            _check_sizes(task["model"], workers)


def _cluster(described: object, workers: int, topology: str | None) -> Cluster:
    try:
        cluster = _described(described, topology)
    except PlansError as error:
        raise UserError(f"task.cluster: {error}") from error
    if cluster.ranks != workers:
        raise UserError(f"task.cluster has {cluster.ranks} GPUs and cluster.workers={workers}; make them equal")
    return cluster


def _described(described: object, topology: str | None) -> Cluster:
    if described == BY_TOPOLOGY:
        return _on_hosts(topology)
    return read_cluster(Path(described)) if isinstance(described, str) else cluster_from(described)


def _on_hosts(topology: str | None) -> Cluster:
    from comm_plans.all_to_all.hosts import cluster_of
    from comm_plans.sources import topology_from

    if topology is None:
        raise UserError(
            f"task.cluster={BY_TOPOLOGY} needs communication=planned, which ties workers to hosts, and a topology= "
            "that names a file or a fabric"
        )
    return cluster_of(topology_from(topology))


def _check_balance(weight: float) -> None:
    if not 0 <= weight < inf:
        raise UserError(f"task.balance is {weight}, and must be 0 or more and finite")


def _check_sizes(model: Json, workers: int) -> None:
    experts, top_k, every, layers = (model[key] for key in ("experts", "top_k", "every", "layers"))
    if experts < workers:
        raise UserError(f"model.experts is {experts}, and cluster.workers={workers}: each worker must hold one")
    if not 1 <= top_k <= experts:
        raise UserError(f"model.top_k is {top_k}, and must be at least 1 and at most model.experts = {experts}")
    if not 1 <= every <= layers:
        raise UserError(f"model.every is {every}, and must be at least 1 and at most model.layers = {layers}")
