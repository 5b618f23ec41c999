"""Timelines: rows of a plan and of a measurement, and a picture that is one XML document."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

from overlap_graphs import training_step

from trainers.overlap.interference import WAITING
from trainers.overlap.operations import Resource
from trainers.overlap.search import search
from trainers.overlap.timeline import Bar, Lanes, measured, predicted, svg

GRAPH, TIMES = training_step(3, 1.0, 1.0, 0.05)
PLAN = search(GRAPH, TIMES, WAITING, seconds=1)


def test_iterations_follow_each_other_up_to_the_time() -> None:
    bars = predicted(PLAN, until=2.5 * PLAN.period_seconds)
    assert {bar.iteration for bar in bars} == {0, 1, 2}
    assert all(bar.begin < 2.5 * PLAN.period_seconds for bar in bars)
    for stream in Resource:
        mine = sorted((bar.begin, bar.end) for bar in bars if bar.stream == stream)
        assert all(end <= begin + 1e-9 for (_, end), (begin, _) in pairwise(mine))


def test_a_measurement_begins_at_nothing() -> None:
    assert measured(GRAPH, {(0, "reduce 1"): (5.0, 6.0), (0, "backward 1"): (4.0, 5.0)}) == [
        Bar(Resource.NETWORK, "reduce 1", 0, 1.0, 2.0),
        Bar(Resource.COMPUTE, "backward 1", 0, 0.0, 1.0),
    ]


def test_the_picture_is_xml_and_has_a_bar_an_operation() -> None:
    bars = predicted(PLAN, until=PLAN.period_seconds)
    root = ElementTree.fromstring(svg([Lanes("predicted <&>", bars)], PLAN.period_seconds))
    titles = [each.text for each in root.iter() if each.tag.endswith("title")]
    assert sorted(filter(None, titles)) == sorted(bar.name for bar in bars)
    assert "predicted <&>" in [each.text for each in root.iter()]
