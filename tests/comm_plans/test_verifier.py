"""The verifier accepts right plans and rejects every way we could think of to break one."""

from __future__ import annotations

import json
import random
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_plans import random_plan, ring_all_gather

from comm_plans.errors import PlanError
from comm_plans.plan import COLLECTIVES
from comm_plans.verifier import verify

plans = st.builds(random_plan, st.sampled_from(COLLECTIVES), st.integers(2, 6), st.integers(0, 10**6))


def star_document() -> dict:
    """An all_reduce of three ranks inside a switch that can multicast and reduce, at 10 GB/s: one tree up, one down."""
    nodes = ["g0", "g1", "g2", "sw", "plain"]
    links = [[a, b, 10] for g in nodes[:3] for s in nodes[3:] for a, b in ((g, s), (s, g))]
    return {
        "format": "comm-plan",
        "version": 1,
        "collective": "all_reduce",
        "root": None,
        "topology": {
            "name": "star",
            "ranks": nodes[:3],
            "switches": [{"name": "sw", "multicast": True, "reduces": True}, "plain"],
            "links": links,
        },
        "nodes": nodes,
        "shards": ["1/3", "1/3", "1/3"],
        "trees": [
            {"operation": "reduce", "root": 0, "start": "0", "share": "1", "paths": [[1, 3], [2, 3], [3, 0]]},
            {"operation": "broadcast", "root": 0, "start": "0", "share": "1", "paths": [[0, 3], [3, 1], [3, 2]]},
        ],
        "algbw": "10",
        "optimal": False,
        "optimum": "20",
        "bottleneck": ["g1"],
        "trees_per_rank": None,
        "method": "hand",
        "solver_version": 1,
        "solve_seconds": 0,
    }


def chain_document() -> dict:
    """The same all_reduce in synchronous steps, through the plain switch: 2 → 1 → 0 and back, at 10 / 4 GB/s."""
    document = star_document()
    up, down = document["trees"]
    up |= {"paths": [[2, 4, 1], [1, 4, 0]], "steps": [0, 1]}
    down |= {"paths": [[0, 4, 1], [1, 4, 2]], "steps": [2, 3]}
    return document | {"algbw": "5/2"}


def test_right_plans():
    assert verify(star_document()).algbw == 10
    assert verify(chain_document()).algbw == Fraction(5, 2)
    verdict = verify(ring_all_gather(5).to_document())
    assert (verdict.algbw, verdict.ranks, verdict.trees, verdict.collective) == (Fraction(25, 2), 5, 5, "all_gather")


@settings(max_examples=60)
@given(plans)
def test_algbw_is_that_of_the_fullest_link(plan):
    loads: Counter[tuple[int, int]] = Counter()
    for tree in plan.trees:
        for path in tree.paths:
            loads.update(dict.fromkeys(pairwise(path), tree.share))
    busiest = max(loads[link] / plan.topology.capacities[link] for link in loads)
    assert verify(plan.to_document()).algbw == 1 / busiest


def test_numbers_beyond_64_bits_stay_exact():
    document = star_document()
    huge = 10**40 + 1
    for tree in document["trees"]:
        tree["share"] = f"{huge - 1}/{huge}"
    document["trees"] += [dict(tree, start=f"{huge - 1}/{huge}", share=f"1/{huge}") for tree in document["trees"]]
    assert verify(document).algbw == 10
    document["trees"][-1]["share"] = f"2/{huge}"
    with pytest.raises(PlanError, match="carry more"):
        verify(document)


def test_a_cut_proves_the_optimum_from_either_side():
    document = ring_all_gather(4).to_document() | {"algbw": "40/3", "optimum": "40/3", "optimal": True}
    for cut in (["g0", "g1", "g2"], ["g3"]):
        assert verify(document | {"bottleneck": cut}).proved
    for cut in ([], ["g0", "g1"], ["g0", "g1", "g2", "g3"]):
        with pytest.raises(PlanError, match="does not prove it"):
            verify(document | {"bottleneck": cut})


def put(*place_and_value):
    """A change that sets the value at a place of the document."""

    def change(document):
        *place, last, value = place_and_value
        for key in place:
            document = document[key]
        document[last] = value

    return change


def drop(*place):
    """A change that removes what is at a place of the document."""

    def change(document):
        *path, last = place
        for key in path:
            document = document[key]
        del document[last]

    return change


BROKEN_STAR = {
    "no format": (drop("format"), "format is not 'comm-plan'"),
    "other format": (put("format", "pickle"), "format is not 'comm-plan'"),
    "other version": (put("version", 2), "version 2 is unknown"),
    "true is no version": (put("version", True), "version True is unknown"),
    "unknown collective": (put("collective", "all_together"), "the collective is none of"),
    "collective is a list": (put("collective", []), "the collective is none of"),
    "no topology": (drop("topology"), "no topology"),
    "ranks missing": (drop("topology", "ranks"), "no list 'ranks'"),
    "one rank": (put("topology", "ranks", ["g0"]), "at least two ranks"),
    "name is a number": (put("topology", "ranks", 0, 5), "not a string"),
    "name twice": (put("topology", "ranks", 0, "g1"), "uses a node name twice"),
    "nodes renamed": (put("nodes", 0, "h0"), "nodes are not its ranks"),
    "link to nowhere": (put("topology", "links", 0, 1, "nowhere"), "impossible link"),
    "link to itself": (put("topology", "links", 0, 1, "g0"), "impossible link"),
    "link twice": (put("topology", "links", 1, ["g0", "sw", 1]), "g0 → sw twice"),
    "link of nothing": (put("topology", "links", 0, 2, 0), "has no bandwidth"),
    "link without number": (put("topology", "links", 0, 2, None), "g0 → sw: None is not a number"),
    "no links": (put("topology", "links", []), "no links"),
    "shard missing": (put("shards", ["1/2", "1/2"]), "2 shards for 3 ranks"),
    "shards too large": (put("shards", 0, "1/2"), "do not add up"),
    "negative shard": (put("shards", ["-1/3", "2/3", "2/3"]), "do not add up"),
    "no trees": (put("trees", []), "has no trees"),
    "tree is no object": (put("trees", 0, 7), "not an object"),
    "wrong operation": (put("trees", 0, "operation", "gather"), "must be one of"),
    "operation is a list": (put("trees", 0, "operation", ["reduce"]), "must be one of"),
    "root is no rank": (put("trees", 0, "root", 3), "roots hold something other than whole numbers from 0 to 2"),
    "root is true": (put("trees", 0, "root", True), "roots hold"),
    "paths missing": (drop("trees", 0, "paths"), "no list 'paths'"),
    "path is text": (put("trees", 0, "paths", 0, "13"), "not a list of node indices"),
    "node is a fraction": (put("trees", 0, "paths", 0, 0, 1.5), "paths hold"),
    "node is out of range": (put("trees", 0, "paths", 0, 0, 5), "paths hold"),
    "node is negative": (put("trees", 0, "paths", 0, 0, -1), "paths hold"),
    "node is huge": (put("trees", 0, "paths", 0, 0, 10**30), "paths hold"),
    "path of one node": (put("trees", 0, "paths", 0, [1]), "less than two nodes"),
    "empty tree": (put("trees", 0, "paths", []), "joins 1 of 3 ranks"),
    "no paths at all": (lambda d: [tree.update(paths=[]) for tree in d["trees"]], "no path at all"),
    "link that is not there": (put("trees", 1, "paths", 1, [3, 4, 1]), "sw → plain, which the network does not have"),
    "path through a rank": (put("trees", 1, "paths", [[0, 3, 1, 4, 2], [0, 3, 1]]), "through the rank g1"),
    "plain switch splits": (put("trees", 1, "paths", [[0, 4], [4, 1], [4, 2]]), "plain, a switch that cannot"),
    "plain switch adds": (put("trees", 0, "paths", [[1, 4], [2, 4], [4, 0]]), "plain, a switch that cannot"),
    "switch is a leaf": (put("trees", 1, "paths", [[0, 4, 1], [1, 4, 2], [0, 3]]), "sw ends a branch"),
    "child before parent": (put("trees", 1, "paths", [[3, 1], [0, 3], [3, 2]]), "before it is there"),
    "sum sent too early": (put("trees", 0, "paths", [[1, 3], [3, 0], [2, 3]]), "before it is there"),
    "cycle": (put("trees", 1, "paths", [[1, 4, 2], [2, 4, 1]]), "before it is there"),
    "received twice": (put("trees", 1, "paths", [[0, 3], [3, 1], [3, 2], [0, 4, 1]]), "g1 takes part twice"),
    "counted twice": (put("trees", 0, "paths", [[1, 3], [2, 3], [1, 4, 2], [3, 0]]), "g1 takes part twice"),
    "root receives": (put("trees", 1, "paths", [[0, 3], [3, 1], [3, 2], [1, 4, 0]]), "the root g0 takes its own data"),
    "rank left out": (put("trees", 1, "paths", [[0, 3], [3, 1]]), r"tree 1 \(broadcast from g0\) joins 2 of 3 ranks"),
    "rank not summed": (put("trees", 0, "paths", [[1, 3], [3, 0]]), r"tree 0 \(reduce to g0\) joins 2 of 3 ranks"),
    "nothing carried": (put("trees", 0, "share", "0"), "carries nothing"),
    "share is text": (put("trees", 0, "share", "all"), "share of a tree: 'all' is not a number"),
    "gap": (put("trees", 0, "start", "1/9"), "no tree carries the buffer to be summed from 0 to 1/9"),
    "too short": (put("trees", 1, "share", "8/9"), "no tree carries the buffer to be sent from 8/9 to 1"),
    "too long": (put("trees", 1, "share", "10/9"), "carry more than the buffer to be sent"),
    "carried twice": (lambda d: d["trees"].append(dict(d["trees"][0])), "two trees carry"),
    "not summed at all": (drop("trees", 0), "no tree carries the buffer to be summed"),
    "sums elsewhere": (
        lambda d: d["trees"][0].update(root=1, paths=[[0, 3], [2, 3], [3, 1]]),
        "summed at g1 but sent from g0",
    ),
    "some steps": (put("trees", 0, "steps", [0, 0, 1]), "others have none"),
    "root given": (put("root", 0), "names a root"),
    "claims more": (put("algbw", "11"), "claims 11 GB/s but its links give 10 GB/s"),
    "claims less": (put("algbw", "9"), "claims 9 GB/s but its links give 10 GB/s"),
    "claims nothing": (drop("algbw"), "algbw: None is not a number"),
    "optimum too low": (put("optimum", "9"), "calls the optimum"),
    "optimal below the optimum": (put("optimal", True), "calls itself optimal at 10 GB/s, below 20 GB/s"),
    "optimal is text": (put("optimal", "yes"), "whether it is optimal"),
    "unknown node in the cut": (put("bottleneck", ["g9"]), "bottleneck is not a list of nodes"),
    "cut is text": (put("bottleneck", "g1"), "bottleneck is not a list of nodes"),
    "trees per rank": (put("trees_per_rank", 0), "trees_per_rank"),
    "seconds": (put("solve_seconds", float("nan")), "solve_seconds"),
    "solver version": (put("solver_version", "1"), "solver_version"),
    "method": (drop("method"), "method is not a name"),
}

BROKEN_CHAIN = {
    "too few steps": (put("trees", 0, "steps", [0]), "not one step for each path"),
    "negative step": (put("trees", 0, "steps", [-1, 1]), "steps hold"),
    "sent in the step of its arrival": (put("trees", 1, "steps", [2, 2]), "before it is there"),
    "sent before its arrival": (put("trees", 1, "steps", [3, 2]), "before it is there"),
    "summed too early": (put("trees", 0, "steps", [1, 1]), "before it is there"),
    "sent before it is summed": (put("trees", 0, "steps", [0, 2]), "is sent from g0 before it is summed there"),
    "a step more": (put("trees", 1, "steps", [2, 2**31]), "steps hold"),
}


@pytest.mark.parametrize("name", BROKEN_STAR)
def test_a_broken_plan_is_rejected(name):
    _check_rejected(star_document(), *BROKEN_STAR[name])


@pytest.mark.parametrize("name", BROKEN_CHAIN)
def test_a_broken_stepped_plan_is_rejected(name):
    _check_rejected(chain_document(), *BROKEN_CHAIN[name])


def _check_rejected(document, change, sentence):
    change(document)
    with pytest.raises(PlanError, match=sentence) as caught:
        verify(document)
    assert "\n" not in str(caught.value)


def test_shards_of_an_all_gather_are_each_ranks_own():
    document = ring_all_gather(4).to_document()
    first, second = document["trees"][:2]
    first["start"], second["start"] = second["start"], first["start"]
    with pytest.raises(PlanError, match="the shard of g0"):
        verify(document)


def test_a_broadcast_has_one_root():
    document = random_plan("broadcast", 4, 3).to_document()
    for root in (None, (document["root"] + 1) % 4, True):
        with pytest.raises(PlanError, match="not rooted at the plan's root"):
            verify(document | {"root": root})


@settings(max_examples=100)
@given(plans, st.integers(0, 10**6))
def test_no_random_damage_to_a_tree_goes_unnoticed(plan, seed):
    """Each rank is to be reached once, so that no edge can be spared, doubled or turned."""
    chance = random.Random(seed)
    document = plan.to_document()
    tree = chance.choice(document["trees"])
    path = chance.choice(tree["paths"])
    kind = chance.choice(["drop", "double", "turn", "share", "root"])
    if kind == "drop":
        tree["paths"].remove(path)
    elif kind == "double":
        tree["paths"].append(path)
    elif kind == "turn":
        path.reverse()
    elif kind == "share":
        tree["share"] = str(Fraction(tree["share"]) * Fraction(chance.choice(["1/2", "3/2"])))
    else:
        tree["root"] = (tree["root"] + 1) % len(plan.topology.ranks)
    with pytest.raises(PlanError):
        verify(document)


anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just([]) | st.just({})


@settings(max_examples=200)
@given(st.data())
def test_whatever_is_put_anywhere_the_answer_is_a_verdict_or_a_sentence(data):
    document = json.loads(json.dumps(data.draw(st.sampled_from([star_document(), chain_document()]))))
    sentences: list[str] = []
    place = document
    while True:
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(anything)
    try:
        assert verify(document).ranks == 3
    except PlanError as error:
        sentences.append(str(error))
    assert all("\n" not in sentence for sentence in sentences)
