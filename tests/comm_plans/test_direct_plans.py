"""Stepped plans: verified, at the cost that their graphs promise, on regular, irregular and damaged networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_interpreter import check

from comm_plans.direct_connect.breadth_first import breadth_first_cost, links_of
from comm_plans.direct_connect.expansions import expanded_spreads
from comm_plans.direct_connect.expression import build, parse
from comm_plans.direct_connect.fabric import wired
from comm_plans.direct_connect.frontier import surveyed
from comm_plans.direct_connect.plans import direct_plan
from comm_plans.errors import Disconnected, PlansError, TopologyError
from comm_plans.exports.msccl_xml import msccl_xml
from comm_plans.exports.svg import svg
from comm_plans.fabrics import fabric
from comm_plans.plan import Plan
from comm_plans.simulator import simulate
from comm_plans.solve import solve
from comm_plans.topology import Link, Topology

BASES = ("K(3)", "K(4)", "K(3,3)", "B(5)", "U(3)", "Kneser(5,2)", "DiC(8,1,3)", "Pi(2,7)")
LOOPLESS = BASES[:-1]


def cost(word: str) -> tuple[int, Fraction]:
    graph = build(parse(word))
    measured = breadth_first_cost(links_of(graph))
    return measured.steps, measured.bandwidth_time(graph.nodes, graph.degree)


def reached(plan: Plan, degree: int) -> tuple[int, Fraction]:
    steps = 1 + max(max(tree.steps or ()) for tree in plan.trees)
    return steps, degree / plan.algbw


def expansion_reaches(word: str, steps: int, time: Fraction) -> None:
    plan = solve(wired(word), "all_gather", method="expansion")
    assert reached(plan, build(parse(word)).degree) == (steps, time)


@pytest.mark.parametrize("base", [base for base in BASES if base != "U(3)"])  # the line graph of a ring is itself
@pytest.mark.parametrize("times", [1, 2])
def test_line_graphs_cost_what_the_formula_says(base: str, times: int) -> None:
    graph, (steps, time) = build(parse(base)), cost(base)
    added = sum(Fraction(1, graph.nodes * graph.degree**power) for power in range(times))
    word = f"L({base})" if times == 1 else f"L^2({base})"
    expansion_reaches(word, steps + times, time + added)


@pytest.mark.parametrize("base", LOOPLESS)
@pytest.mark.parametrize("count", [2, 3])
def test_degree_expansions_cost_what_the_formula_says(base: str, count: int) -> None:
    graph, (steps, time) = build(parse(base)), cost(base)
    expansion_reaches(f"{base}*{count}", steps + 1, time + Fraction(count - 1, count * graph.nodes))


@pytest.mark.parametrize("base", BASES)
def test_powers_cost_what_the_formula_says(base: str) -> None:
    graph, (steps, time) = build(parse(base)), cost(base)
    size = graph.nodes
    expansion_reaches(f"{base}^2", 2 * steps, time * size / (size - 1) * (1 - Fraction(1, size**2)))


def test_a_power_by_its_structure_may_beat_breadth_first() -> None:
    plans = [solve(wired("Pi(2,7)^2"), "all_gather", method=method) for method in ("expansion", "breadth_first")]
    assert [4 / plan.algbw for plan in plans] == [Fraction(96, 49), 2]


@pytest.mark.parametrize("factors", [("K(3)", "B(5)"), ("U(3)", "DiC(8,1,3)"), ("K(3)", "Kneser(5,2)", "U(2)")])
def test_products_of_optimal_graphs_are_optimal(factors: Sequence[str]) -> None:
    plan = solve(wired("x".join(factors)), "all_gather", method="breadth_first")
    degree = sum(build(parse(factor)).degree for factor in factors)
    size = len(plan.shards)
    assert reached(plan, degree) == (sum(cost(factor)[0] for factor in factors), Fraction(size - 1, size))
    assert plan.optimal


@pytest.mark.parametrize("word", ["Pi(4,11)", "Pi(3,16)", "L(Pi(2,5))", "L^2(DiC(8,1,3))", "U(3)*2", "K(12)"])
@pytest.mark.parametrize("method", ["breadth_first", "expansion"])
def test_both_directions_of_an_all_reduce_are_paid_for(word: str, method: str) -> None:
    if method == "breadth_first":
        choice = surveyed(parse(word), method)
        scatter = reached(solve(wired(word), "reduce_scatter", method=method), choice.degree)
        assert scatter == (choice.scatter_steps, choice.scatter_time)
        both = reached(solve(wired(word), "all_reduce", method=method), choice.degree)
        assert both == (choice.steps + choice.scatter_steps, choice.bandwidth_time + choice.scatter_time)
        return
    times = {name: 1 / solve(wired(word), name, method=method).algbw for name in ("all_gather", "reduce_scatter")}
    assert 1 / solve(wired(word), "all_reduce", method=method).algbw == sum(times.values())


def test_a_wiring_and_its_reverse_may_differ() -> None:
    gather, scatter = (
        solve(wired("Pi(4,11)"), name, method="breadth_first") for name in ("all_gather", "reduce_scatter")
    )
    assert (4 / gather.algbw, 4 / scatter.algbw) == (Fraction(14, 11), Fraction(16, 11))


@st.composite
def networks(draw: st.DrawFn) -> Topology:
    """Strongly connected networks of unequal links."""
    size = draw(st.integers(2, 7))
    names = tuple(f"r{rank}" for rank in range(size))
    widths = st.fractions(Fraction(1, 3), 5, max_denominator=3)
    pairs = [(i, j) for i in range(size) for j in range(size) if i != j]
    chosen = [(i, (i + 1) % size) for i in range(size)] + draw(st.lists(st.sampled_from(pairs), max_size=12))
    return Topology("odd", names, (), tuple(Link(names[i], names[j], draw(widths)) for i, j in chosen))


@settings(max_examples=40)
@given(networks(), st.sampled_from(["all_gather", "reduce_scatter", "all_reduce"]))
def test_any_direct_network_has_a_verified_plan(topology: Topology, collective: str) -> None:
    plan = solve(topology, collective, method="breadth_first")  # solve verifies
    forest = solve(topology, collective)
    assert plan.algbw <= forest.optimum <= plan.optimum
    assert collective == "all_reduce" or plan.optimum == forest.algbw


def test_a_failed_link_costs_but_breaks_nothing() -> None:
    whole = wired("Torus(4,4)")
    damaged = replace(whole, links=whole.links[1:])
    assert (
        solve(damaged, "all_reduce", method="breadth_first").algbw
        < solve(whole, "all_reduce", method="breadth_first").algbw
    )


@pytest.mark.parametrize("network", ["mi250:boxes=1", "dgx1_v100:boxes=1", "full_mesh:ranks=16", "path:ranks=5"])
def test_fabrics_without_switches(network: str) -> None:
    plan = solve(fabric(network), "all_gather", method="breadth_first")
    assert plan.algbw <= plan.optimum


@pytest.mark.parametrize("word", ["L(DiC(8,1,3))", "Pi(4,16)", "C(12,2,3)", "L^2(K(3))"])
@pytest.mark.parametrize("size", [2**20, 2**30])
def test_the_simulator_agrees_with_the_cost_model(word: str, size: int) -> None:
    plan = solve(wired(f"{word}:bandwidth=25"), "all_gather", method="breadth_first")
    steps, time = cost(word)
    node = 25e9 * build(parse(word)).degree
    assert simulate(plan, size, latency=1e-5).seconds == pytest.approx(steps * 1e-5 + float(time) * size / node)


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "all_reduce"])
def test_msccl_programs_of_stepped_plans_compute_the_collective(collective: str) -> None:
    for word, method in (("L(K(3))", "breadth_first"), ("B(3)*2", "expansion"), ("Pi(2,7)", "breadth_first")):
        plan = solve(wired(word), collective, method=method)
        check(msccl_xml(plan)[0])


def test_stepped_plans_are_drawn_and_saved(tmp_path) -> None:
    plan = solve(wired("DiC(8,1,3)"), "all_reduce", method="breadth_first")
    assert "<svg" in svg(plan)
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan


def test_transposing_a_wiring_reverses_its_arcs_node_by_node() -> None:
    for word in ("L^2(Pi(2,5))", "L(U(3)*2)^2", "L(K(3)xU(3))"):
        graph = build(parse(word))
        arcs = {(source, target) for source, target in graph.arcs.tolist()}
        for spread in expanded_spreads(parse(word), transposed=True)[:5]:
            used = set(zip(spread.targets.tolist(), spread.sources.tolist(), strict=True))
            assert used <= arcs


def test_what_cannot_be_planned_is_told() -> None:
    ring = fabric("ring:ranks=4")
    with pytest.raises(TopologyError, match="has the switches sw"):
        solve(fabric("star"), "all_gather", method="breadth_first")
    with pytest.raises(Disconnected):
        solve(Topology("two", ("a", "b"), (), ()), "all_gather", method="breadth_first")
    with pytest.raises(TopologyError, match="no wiring such as"):
        solve(ring, "all_gather", method="expansion")
    with pytest.raises(TopologyError, match="not those of the wiring"):
        solve(replace(ring, name="U(4)"), "all_gather", method="expansion")
    with pytest.raises(PlansError, match="take the method forest"):
        direct_plan(ring, "broadcast", "breadth_first")
    with pytest.raises(PlansError, match="neither trees per rank nor shards"):
        solve(ring, "all_gather", method="breadth_first", trees_per_rank=2)
    with pytest.raises(TopologyError, match="without loops"):
        solve(wired("Pi(2,5)*2"), "all_gather", method="expansion")


@pytest.mark.slow
@pytest.mark.parametrize("word", ["Pi(4,1024)", "L^3(DiC(8,1,3)*2)", "L^3(C(16,3,4))"])
def test_a_thousand_nodes(word: str) -> None:
    plan = solve(wired(word), "all_gather", method="breadth_first")
    assert reached(plan, 4) == cost(word)
