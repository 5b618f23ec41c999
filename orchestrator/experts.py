"""Experts that come with the project, against the workers that hold them and the cluster they are planned for."""

from pathlib import Path
from typing import Any

from comm_plans.all_to_all.cluster import Cluster
from comm_plans.all_to_all.cluster_file import cluster_document, cluster_from, read_cluster
from comm_plans.errors import PlansError
from orchestrator.errors import UserError

Json = dict[str, Any]

_TASK = "trainers.tasks.moe_language_model.MoeLanguageModel"
_MODEL = "trainers.models.moe_transformer.MoeTransformer"


def settle_experts(task: Json, workers: int) -> None:
    """Check the numbers of experts, and put the keys of a cluster in the place of its file: workers may not see it.

    UserError names the key that is wrong.
    """
    if task["_target_"] == _TASK:
        if task["cluster"] is not None:
            task["cluster"] = cluster_document(_cluster(task["cluster"], workers))
        if task["model"]["_target_"] == _MODEL:
            _check_sizes(task["model"], workers)


def _cluster(described: object, workers: int) -> Cluster:
    try:
        cluster = read_cluster(Path(described)) if isinstance(described, str) else cluster_from(described)
    except PlansError as error:
        raise UserError(f"task.cluster: {error}") from error
    if cluster.ranks != workers:
        raise UserError(f"task.cluster has {cluster.ranks} GPUs and cluster.workers={workers}; make them equal")
    return cluster


def _check_sizes(model: Json, workers: int) -> None:
    experts, top_k, every, layers = (model[key] for key in ("experts", "top_k", "every", "layers"))
    if experts < workers:
        raise UserError(f"model.experts is {experts}, and cluster.workers={workers}: each worker must hold one")
    if not 1 <= top_k <= experts:
        raise UserError(f"model.top_k is {top_k}, and must be at least 1 and at most model.experts = {experts}")
    if not 1 <= every <= layers:
        raise UserError(f"model.every is {every}, and must be at least 1 and at most model.layers = {layers}")
