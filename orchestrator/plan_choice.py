"""Which plan the gradients follow: asked of the plan cache, which solves and verifies what it does not know."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from comm_plans.errors import PlansError
from comm_plans.exports.svg import svg
from comm_plans.files import write_atomically
from comm_plans.live import LivePlans, plans_for
from comm_plans.question import Question
from orchestrator.cluster.nodes import link_matrices, link_speeds, living_nodes
from orchestrator.communication import OF_GRADIENTS
from orchestrator.config import Config
from orchestrator.errors import UserError
from orchestrator.events import Json, PlanChosen
from orchestrator.network import Site, site


@dataclass(frozen=True)
class PlanChoice:
    """How gradients will travel. `plans`: in their JSON form, for the workers; `pins`: a Ray resource for each rank.

    remarks: what a person should know, in a sentence each.
    """

    event: PlanChosen = field(default_factory=lambda: PlanChosen("none"))
    plans: list[Json] = field(default_factory=list)
    pins: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def save(self, path: Path) -> None:
        """Write the plan of the gradients, if there is one, for `comm-plan` to look at."""
        if self.plans:
            write_atomically(path, json.dumps(self.plans[0], separators=(",", ":")).encode())


def choose_plan(config: Config) -> PlanChoice:
    """The plan for the network of a cluster that this process is connected to.

    What cannot be planned is a UserError with communication.strict=true, else a remark and the backend's own way.
    """
    if config.communication.method == "backend":
        return PlanChoice()
    try:
        return _planned(_site(config), config.cluster.workers)
    except (UserError, PlansError) as error:
        if config.communication.strict:
            raise UserError(str(error)) from error
        return PlanChoice(remarks=(f"{error}; gradients travel by the backend's own all_reduce",))


def _site(config: Config) -> Site:
    cluster, nodes = config.cluster, living_nodes()
    interface = config.communication.interface
    return site(
        config.topology,
        cluster.address,
        cluster.workers,
        cluster.cpus_per_worker,
        nodes,
        lambda: link_speeds(nodes, interface),
        (lambda: link_matrices(nodes)) if cluster.gpus_per_worker else None,
        cluster.elastic,
    )


def _planned(network: Site, workers: int) -> PlanChoice:
    live = plans_for(network.topology, workers, collectives=[OF_GRADIENTS])
    remarks = (network.remark,) if network.remark else ()
    return PlanChoice(_event(live), live.to_documents(), network.pins, remarks)


def _event(live: LivePlans) -> PlanChosen:
    (plan,) = live.plans
    return PlanChosen(
        live.source,
        key=Question.of(plan.topology, plan.collective).key,
        collective=plan.collective,
        algbw=str(plan.algbw),
        network=plan.topology.name,
        optimal=plan.optimal,
        seconds=live.seconds,
        picture=svg(plan),
    )
