"""A plan's JSON form: complete, exact, and the one that docs/plan-format.md describes."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_plans import random_plan, ring_all_gather

from comm_plans import Plan
from comm_plans.errors import PlanError
from comm_plans.plan import COLLECTIVES, Tree, shard_starts
from comm_plans.topology import Topology
from comm_plans.verifier import verify

PAGE = Path(__file__).parents[2] / "docs" / "plan-format.md"

plans = st.builds(random_plan, st.sampled_from(COLLECTIVES), st.integers(2, 6), st.integers(0, 10**6))


@settings(max_examples=50)
@given(plans)
def test_documents_round_trip(plan):
    assert Plan.from_document(json.loads(json.dumps(plan.to_document()))) == plan


def test_files_round_trip(tmp_path):
    plan = random_plan("all_reduce", 5, 1)
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_the_page_shows_a_right_plan_with_every_key():
    example = json.loads(re.search(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL).group(1))
    assert verify(example).proved
    assert Plan.from_document(example).to_document() == example
    keys_in_the_table = {
        key
        for row in re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.MULTILINE)
        for key in re.findall(r"`(\w+)`", row)
    }
    assert set(example) <= keys_in_the_table


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "does not hold JSON"),
        (b"[1]", "not an object"),
        (b"{}", "format is not 'comm-plan'"),
        (b"\xff", "does not hold JSON"),
        (b"[" * 100_000, "does not hold JSON"),
        (b'{"format": "comm-plan", "version": 2}', "version 2 is unknown"),
    ],
)
def test_files_that_hold_no_plan(tmp_path, content, sentence):
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(PlanError, match=sentence):
        Plan.load(tmp_path / "plan.json")
    with pytest.raises(PlanError, match="cannot be read"):
        Plan.load(tmp_path / "none.json")


@settings(max_examples=50)
@given(plans, st.randoms(use_true_random=False))
def test_a_relabelled_plan_is_right_on_the_relabelled_network(plan, chance):
    names = plan.topology.ranks
    mapping = list(range(len(names)))
    chance.shuffle(mapping)
    renamed = {name: f"x{mapping[rank]}" for rank, name in enumerate(names)}
    links = tuple(
        replace(link, source=renamed[link.source], target=renamed[link.target]) for link in plan.topology.links
    )
    other = Topology("other", tuple(sorted(renamed.values())), (), links)
    moved = plan.relabelled(other, mapping)
    assert verify(moved.to_document()).algbw == plan.algbw
    assert moved.depth == plan.depth
    back = [mapping.index(rank) for rank in range(len(names))]
    assert moved.relabelled(plan.topology, back) == plan


def test_unequal_shards_move_with_their_ranks():
    plan = ring_all_gather(3)
    shards = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
    trees = tuple(
        replace(tree, start=start, share=share)
        for tree, start, share in zip(plan.trees, shard_starts(shards), shards, strict=True)
    )
    unequal = replace(plan, trees=trees, shards=shards, algbw=Fraction(12), optimum=Fraction(12), optimal=False)
    verify(unequal.to_document())
    turned = Topology("turned", ("g1", "g2", "g0"), (), plan.topology.links)
    moved = unequal.relabelled(turned, [2, 0, 1])
    assert moved.shards == (Fraction(1, 3), Fraction(1, 6), Fraction(1, 2))
    assert verify(moved.to_document()).algbw == 12


def test_what_a_plan_may_leave_out_and_what_not():
    document = ring_all_gather(3).to_document()
    for key in ("root", "trees_per_rank"):
        assert getattr(Plan.from_document({name: document[name] for name in document if name != key}), key) is None
    document["topology"]["links"][0][2] = 10**10
    with pytest.raises(PlanError, match="the plan's topology: link g0 → g1: bandwidth"):
        Plan.from_document(document)


def test_depth_counts_hops_between_ranks():
    star = Tree("broadcast", 0, Fraction(0), Fraction(1), ((0, 3), (3, 1), (3, 2)))
    chain = Tree("reduce", 0, Fraction(0), Fraction(1), ((2, 3, 1), (1, 3, 0)))
    assert (star.depth(3), chain.depth(3)) == (1, 2)
    assert ring_all_gather(6).depth == 5
