"""What overlapped training is made of: who uses a parameter where, buckets, optimizers by part, profiles, graphs."""

import pytest
import torch
from prodigyopt import Prodigy
from schedulefree import AdamWScheduleFree
from torch import nn

from trainers.errors import OverlapError
from trainers.hypergradient import HypergradientAdam
from trainers.models.transformer import Transformer
from trainers.overlap.interference import WAITING
from trainers.overlap.operations import Resource
from trainers.overlap.profiler import line, timing
from trainers.overlap.search import search
from trainers.overlap.training.blocks import Blocks
from trainers.overlap.training.buckets import Bucket
from trainers.overlap.training.graph import step_graph
from trainers.overlap.training.layout import BucketLayout, Layout, serial
from trainers.overlap.training.partial_steps import PartialSteps, steps_by_part
from trainers.overlap.training.planning import fastest, order_of, simple_orders
from trainers.overlap.training.profile import StepProfile, slowest
from trainers.overlap.training.recording import record, trainable

TOKENS = torch.arange(12).reshape(2, 6)


def transformer() -> Transformer:
    return Transformer(vocabulary=32, width=16, layers=3, heads=2, key_value_heads=1, tied=False)


def recorded(model: nn.Module):
    return record(model, lambda: model(TOKENS).square().mean().backward())


def test_a_parameter_is_waited_for_where_it_is_used_and_not_where_it_lives():
    recording = recorded(transformer())
    assert recording.places["embedding.weight"] == "embedding"
    assert recording.places["blocks.1.attention.keys.weight"] == "blocks.1.attention.keys"
    assert recording.places["unembedding.weight"] == ""  # `linear` takes it, without a call of its module
    assert recording.calls[:2] == ("", "embedding")
    assert recording.ready[0] in ("norm.weight", "unembedding.weight")
    assert recording.ready[-1] == "embedding.weight"


def test_recording_changes_nothing_that_the_model_gives():
    model = transformer()
    before = model(TOKENS)
    recorded(model)
    assert torch.equal(model(TOKENS), before)
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in model.modules())


def test_a_parameter_without_a_gradient_is_named():
    model = nn.ModuleDict({"used": nn.Linear(2, 2), "idle": nn.Linear(2, 2)})
    with pytest.raises(OverlapError, match=r"idle\.weight got no gradient"):
        record(model, lambda: model["used"](torch.ones(1, 2)).sum().backward())


@pytest.fixture(scope="module")
def blocks() -> Blocks:
    model = transformer()
    return Blocks(recorded(model), {name: each.nbytes for name, each in trainable(model).items()})


def test_every_way_to_put_blocks_together_holds_every_parameter_once_and_in_order(blocks):
    model = transformer()
    equal, tapered = blocks.candidates().values()
    assert {len(way) for way in equal} >= {2, 4}
    assert len(blocks.tapered(3)) > 3
    assert blocks.size(blocks.tapered(3)[0]) > 2 * blocks.size(blocks.tapered(3)[2])
    for buckets in equal | tapered:
        Layout("overlapped", buckets, tuple(range(len(buckets)))).check(model)
        assert [name for bucket in buckets for name in bucket.parameters] == list(recorded(model).ready)


def test_a_layout_is_refused_by_another_model_and_where_it_makes_no_sense(blocks):
    layout = serial(blocks.all)
    assert Layout.from_json(layout.to_json()) == layout
    with pytest.raises(OverlapError, match="for another model"):
        layout.check(nn.Linear(2, 2))
    with pytest.raises(OverlapError, match="does not send each bucket once"):
        Layout("overlapped", layout.buckets, (0, 0)).check(transformer())
    with pytest.raises(OverlapError, match="no plan of overlapping"):
        Layout.from_json({"mode": "overlapped"})


def test_a_gradient_for_which_nobody_has_waited_is_an_error_and_not_a_silent_use_of_old_weights():
    weight = nn.Parameter(torch.ones(2))
    bucket = Bucket({"layer.weight": weight}, {})
    bucket.begin()
    assert bucket.missing == ["layer.weight"]
    bucket.awaited = False
    with pytest.raises(OverlapError, match=r"used layer\.weight before its last step was done"):
        bucket.take(weight)


def test_which_optimizers_step_by_part():
    weights = [nn.Parameter(torch.ones(2))]
    assert steps_by_part(torch.optim.AdamW(weights))
    assert steps_by_part(AdamWScheduleFree(weights))
    assert not steps_by_part(Prodigy(weights))
    assert not steps_by_part(HypergradientAdam(weights))
    assert not steps_by_part(torch.optim.LBFGS(weights))
    assert not steps_by_part(type("SGD", (torch.optim.SGD,), {})(weights))


def test_parts_of_a_step_leave_the_scalars_of_the_whole():
    whole, parts = ([nn.Parameter(torch.arange(3.0) + index) for index in range(4)] for _ in range(2))
    at_once, by_part = (AdamWScheduleFree(weights, warmup_steps=3) for weights in (whole, parts))
    steps = PartialSteps(by_part)
    for optimizer in (at_once, by_part):
        optimizer.train()
    for rate in (0.1, 0.3, 0.2):
        for weights in (whole, parts):
            for weight in weights:
                weight.grad = weight.detach() * rate
        at_once.param_groups[0]["lr"] = rate
        at_once.step()
        steps.begin(rate)
        steps.step(parts[2:])
        steps.step(parts[:2])
        steps.end()
    for mine, theirs in zip(parts, whole, strict=True):
        assert torch.equal(mine, theirs)
    scalars = [{**group, "params": None} for group in (by_part.param_groups[0], at_once.param_groups[0])]
    assert scalars[0] == scalars[1]


def test_disturbed_samples_are_rejected_and_counted():
    assert timing([1.0, 1.1, 1.05, 9.0, 1.02]).rejected == 1
    assert timing([1.0, 1.1, 1.05, 9.0, 1.02]).seconds == pytest.approx(1.035)


def test_a_line_through_sums_of_several_sizes():
    assert line([(size, 0.002 + size * 1e-9) for size in (1e5, 1e6, 1e7)]) == pytest.approx((0.002, 1e-9))
    assert line([(1e5, 1.0), (1e6, 0.5)])[1] == 0.0  # nothing gets faster by being larger


def profile(blocks: Blocks, **more: object) -> StepProfile:
    places = ("", *(block.place for block in reversed(blocks.all) if block.place))
    places = tuple(dict.fromkeys(places))
    sizes = {name: blocks.size(BucketLayout((name,), None)) for block in blocks.all for name in block.parameters}
    values = {
        "machine": "here", "places": places, "forward": (1.0,) * len(places), "blocks": blocks.all,
        "backward": (2.0,) * len(blocks.all), "bytes": sizes, "network": (0.0, 3.0 * len(blocks.all) / blocks.bytes),
        "memory": (0.0, 1e-9), "update": 5.0, "passes": 0.0, "speeds": {"memory": (0.5, 0.6)}, "rejected": 1,
    }  # fmt: skip
    return StepProfile(**{**values, **more})


def test_the_graph_of_a_step_adds_up_to_the_profile(blocks):
    found = profile(blocks)
    assert StepProfile.from_json(found.to_json()) == found
    for buckets in (blocks.all, blocks.equal(2)):
        graph, times = step_graph(buckets, found, by_part=True, order=range(len(buckets)))
        assert sum(times[name] for name in times if name.startswith("forward")) == len(found.places)
        assert sum(times[name] for name in times if name.startswith("backward")) == 2 * len(blocks.all)
        assert sum(times[name] for name in graph.on(Resource.NETWORK)) == pytest.approx(3 * len(blocks.all))
        whole, _ = step_graph(buckets, found, by_part=False, order=range(len(buckets)))
        assert whole["forward 0"].after == (f"backward {len(buckets) - 1}", "update")


def test_the_slowest_rank_counts(blocks):
    other = profile(blocks, backward=(4.0,) * len(blocks.all), machine="there", speeds={"memory": (0.5, 0.4)})
    both = slowest([profile(blocks), other])
    assert both.backward == other.backward
    assert both.forward == other.forward
    assert (both.machine, both.rejected, both.speeds["memory"]) == ("here + there", 2, (0.5, 0.4))


def test_a_searched_step_hides_most_of_its_communication(blocks):
    found = profile(blocks)
    graph, times = step_graph(blocks.all, found, by_part=True)
    plan = search(graph, times, WAITING, seconds=1)
    assert sorted(order_of(plan)) == list(range(len(blocks.all)))
    assert plan.period_seconds < 0.75 * plan.serial_seconds


def test_simple_orders_send_some_buckets_later_and_the_last_of_them_first():
    orders = list(simple_orders(6))
    assert orders[0] == (5, 4, 3, 2, 1, 0)
    assert orders[4] == (0, 1, 2, 3, 5, 4)
    assert (0, 2, 4, 5, 3, 1) in orders
    assert (0, 1, 3, 4, 5, 2) in orders
    assert all(sorted(order) == list(range(6)) for order in orders)


def test_a_layout_is_followed_only_where_it_is_clearly_faster() -> None:
    assert fastest({"serial": 1.0, "ddp": 1.1, "4 equal buckets": 0.96}) == "4 equal buckets"
    assert fastest({"serial": 1.0, "ddp": 1.1, "4 equal buckets": 0.98}) == "serial"
    assert fastest({"serial": 1.0, "ddp": 0.97, "4 equal buckets": 0.95}) == "ddp"
