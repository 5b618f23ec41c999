"""How ranks settle on plans: by options, variables and files; what is wrong is one sentence, known to all of them."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from live_networks import degraded_torus, two_boxes, unequal_star
from live_ranks import run_ranks
from planned_ranks import EVERYTHING, NETWORKS, on, planned
from torch import distributed as dist

from comm_plans import PlanCache, solve
from comm_plans.errors import PlanError, PlansError
from comm_plans.fabrics import fabric
from comm_plans.live import LivePlans, plans_for
from comm_plans.plan import COLLECTIVES
from comm_plans.runtime import PlannedOptions

LENIENT = replace(EVERYTHING, strict=False)


def works(group: dist.ProcessGroup) -> int:
    """How many calls of a sum that comes out right went by plan."""
    tensor = torch.full((1000,), float(group.rank()))
    dist.all_reduce(tensor)
    assert tensor.eq(sum(range(group.size()))).all()
    return group.counters()["all_reduce"]["planned_calls"]


def settle(rank: int, store: dist.Store, world: int, by_rank: dict[int, PlannedOptions]) -> tuple[str, int]:
    """The rule of a group whose ranks were given these options, rank 0's being the default; planned calls."""
    with planned(store, rank, world, by_rank.get(rank, by_rank[0])) as group:
        return group.rule, works(group)


def refused(rank: int, store: dist.Store, world: int, by_rank: dict[int, PlannedOptions]) -> str:
    with pytest.raises(PlansError) as caught, planned(store, rank, world, by_rank.get(rank, by_rank[0])):
        pass
    return str(caught.value)


FAULTS = {
    "another network's ranks": (
        {0: replace(LENIENT, topology=fabric("ring:ranks=5"))},
        "is a network of 5 ranks and the job has 3",
    ),
    "no such file": ({0: replace(LENIENT, plans=("/nowhere/plan.json",))}, "/nowhere/plan.json cannot be read"),
    "one rank without": (
        {0: replace(LENIENT, topology="full_mesh:ranks=3"), 2: LENIENT},
        "rank 2 has another topology",
    ),
    "one rank's word": (
        {0: replace(LENIENT, topology="full_mesh:ranks=3"), 1: replace(LENIENT, topology="x:y")},
        "x:y",
    ),
    "two transports": ({0: on(NETWORKS[3]), 1: on(NETWORKS[3], "p2p")}, "rank 1 has another transport"),
    "no such interface": ({0: replace(on(NETWORKS[3]), interface="nothere0")}, "network interface nothere0"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_the_same_sentence_on_all_ranks(name: str) -> None:
    options, words = FAULTS[name]
    strict = {rank: replace(each, strict=rank == 0) for rank, each in options.items()}
    sentences = run_ranks(3, refused, 3, strict)
    assert len(set(sentences)) == 1
    assert words in sentences[0]
    assert "\n" not in sentences[0]


@pytest.mark.parametrize("name", FAULTS)
def test_unless_strict_a_fault_is_a_remark_and_everything_goes_by_gloo(name: str) -> None:
    options, words = FAULTS[name]
    lenient = {rank: replace(each, strict=False) for rank, each in options.items()}
    for rule, calls in run_ranks(3, settle, 3, lenient):
        assert words in rule
        assert "every collective goes by the inner group" in rule
        assert calls == 0


def test_without_a_network_everything_goes_by_gloo() -> None:
    for rule, calls in run_ranks(2, settle, 2, {0: PlannedOptions()}):
        assert "no topology or plan was named" in rule
        assert calls == 0


def by_environment(rank: int, store: dist.Store, variables: dict[str, str]) -> tuple[str, int]:
    os.environ.update(variables)
    with planned(store, rank, 4, None) as group:
        return group.rule.splitlines()[0], works(group)


def test_the_environment_names_a_network_or_plan_files(tmp_path: Path) -> None:
    network, plan = tmp_path / "star.json", tmp_path / "plan.json"
    unequal_star().save(network)
    solve(unequal_star(), "all_reduce").save(plan)
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    for source in ("solved", "cache"):
        for first, _ in run_ranks(4, by_environment, cache | {"COMM_PLANS_TOPOLOGY": str(network)}):
            assert first.startswith(f"plans for unequal star ({source}, ")
    for first, calls in run_ranks(4, by_environment, {"COMM_PLANS_PLAN": str(plan), "COMM_PLANS_TRANSPORT": "p2p"}):
        assert first.startswith("plans for unequal star (file, ")
        assert calls == 0  # too small


def wrong_words(rank: int, store: dist.Store, variables: dict[str, str]) -> str:
    os.environ.update(variables if rank == 1 else {})
    with pytest.raises(PlansError) as caught, planned(store, rank, 2, None):
        pass
    return str(caught.value)


@pytest.mark.parametrize("name", ["COMM_PLANS_STRICT", "COMM_PLANS_TRANSPORT"])
def test_words_that_make_no_sense_are_refused_on_all_ranks(name: str) -> None:
    for sentence in run_ranks(2, wrong_words, {name: "perhaps"}):
        assert "'perhaps'" in sentence
        assert "(rank 1)" in sentence


def swap(rank: int, store: dist.Store, transport: str, other: LivePlans) -> None:
    healthy = fabric("torus:shape=3x3")
    with planned(store, rank, 9, on(healthy, transport)) as group:
        before, rule = group.plans, group.rule
        assert works(group) == 1
        for wrong, words in ((plans_for(two_boxes(), 8), "network of 8 ranks"), (None, "gave no new plans")):
            with pytest.raises(PlansError, match=words):
                group.replace_plans(wrong)
        assert (group.plans, group.rule) == (before, rule)
        pending = torch.full((100_000,), 1.0)
        work = dist.all_reduce(pending, async_op=True)
        group.replace_plans(other if rank == 0 else None)
        assert pending.eq(9).all()
        assert work.wait()
        assert works(group) == 3
        assert group.plans.topology == other.topology
        assert group.rule != rule


@pytest.mark.parametrize("transport", ["streams", pytest.param("p2p", marks=pytest.mark.slow)])
def test_plans_are_replaced_between_two_steps(transport: str) -> None:
    run_ranks(9, swap, transport, plans_for(degraded_torus(), 9))


def test_live_plans_are_of_every_collective_and_root(tmp_path: Path) -> None:
    cache = PlanCache(tmp_path)
    first, second = (plans_for(unequal_star(), 4, cache) for _ in range(2))
    assert (first.source, second.source) == ("solved", "cache")
    assert {plan.collective for plan in first.plans} == set(COLLECTIVES)
    assert [plan.root for plan in first.plans if plan.collective == "reduce"] == [0, 1, 2, 3]
    assert LivePlans.from_documents(json.loads(json.dumps(first.to_documents()))).plans == first.plans


def test_live_plans_that_do_not_belong_together_are_refused() -> None:
    ring, star = solve(fabric("ring:ranks=4"), "all_reduce"), solve(unequal_star(), "all_gather")
    for plans, words in (((), "no plan to go by"), ((ring, star), "different networks"), ((ring, ring), "two plans")):
        with pytest.raises(PlanError, match=words):
            LivePlans(plans)
