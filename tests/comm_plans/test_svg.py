"""Pictures of plans hold what they promise: every node and link, loads, the cut, a tree a root, all within the page."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from xml.etree import ElementTree

import pytest
from small_plans import full_mesh, random_plan, ring_all_gather

from comm_plans.errors import PlanError
from comm_plans.exports.layout import laid_out
from comm_plans.exports.svg import svg
from comm_plans.fabrics import fabric
from comm_plans.plan import COLLECTIVES

SVG = "{http://www.w3.org/2000/svg}"
FABRICS = ["dgx_a100:boxes=3", "dgx_h100:boxes=2", "mi250:boxes=2", "torus:shape=4x4", "fat_tree", "dragonfly", "ring"]


def words(picture: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}text")]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_link_is_drawn_with_its_load(collective: str) -> None:
    plan = random_plan(collective, 5, 2)
    picture = ElementTree.fromstring(svg(plan))
    hints = [element.text for element in picture.iter(f"{SVG}title") if "→" in (element.text or "")]
    assert len(hints) == len(plan.topology.links)
    assert any("busy 100.0%" in hint for hint in hints), "the busiest link is busy all the time"
    assert f"{collective} on mesh5" in words(picture)


def test_one_tree_a_root_in_the_root_s_colour() -> None:
    picture = ElementTree.fromstring(svg(ring_all_gather(5)))
    colours = [element.get("fill") for element in picture.iter(f"{SVG}circle")]
    own = {colour for colour in colours if colour.startswith("hsl")}
    assert len(own) == 5
    assert all(colours.count(colour) == 2 for colour in own), "once in the network, once as a root"


def test_the_tight_cut_is_marked() -> None:
    plan = replace(ring_all_gather(4), bottleneck=("g0",))
    unmarked, marked = (ElementTree.fromstring(svg(each)) for each in (ring_all_gather(4), plan))
    dashed = [element for element in marked.iter(f"{SVG}rect") if element.get("stroke-dasharray")]
    assert len(dashed) == 2, "one around g0, one in the legend"
    assert not [element for element in unmarked.iter(f"{SVG}rect") if element.get("stroke-dasharray")]


@pytest.mark.parametrize("name", FABRICS)
def test_no_two_nodes_of_a_layout_cover_each_other(name: str) -> None:
    topology = fabric(name)
    layout = laid_out(topology, 64.0, 112.0)
    assert layout.spots.keys() == set(range(len(topology.nodes)))
    for one, two in combinations(layout.spots.values(), 2):
        apart = abs(one.x - two.x) >= one.half_width + two.half_width
        assert apart or abs(one.y - two.y) >= one.half_height + two.half_height
    for spot in layout.spots.values():
        assert 0 <= spot.x - spot.half_width <= spot.x + spot.half_width <= layout.width
        assert 0 <= spot.y - spot.half_height <= spot.y + spot.half_height <= layout.height


def test_large_plans_show_load_only() -> None:
    picture = ElementTree.fromstring(svg(ring_all_gather(40)))
    assert not any("largest tree" in each for each in words(picture))
    assert sum(1 for _ in picture.iter(f"{SVG}circle")) == 40


def test_names_are_text_and_never_markup() -> None:
    plan = random_plan("broadcast", 3, 1)
    named = replace(full_mesh(3), name="<script>&\"'")
    assert "broadcast on <script>&\"'" in words(ElementTree.fromstring(svg(replace(plan, topology=named))))


def test_a_wrong_plan_is_not_drawn() -> None:
    plan = ring_all_gather(3)
    with pytest.raises(PlanError):
        svg(replace(plan, algbw=plan.algbw + Fraction(1)))
