"""Router, experts, balance loss, grouping and load of a mixture of experts, each against its definition."""

import re
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import silu

from comm_plans.runtime.all_to_all.exchange import Alone
from trainers import Trainer, TrainerOptions
from trainers.experts.grouping import Grouping, expert_of_rows
from trainers.experts.load import Load, skew, summary
from trainers.experts.mixture import MixtureOfExperts
from trainers.experts.router import balance_loss
from trainers.models.moe_transformer import MoeTransformer
from trainers.models.transformer import SwiGLU, Transformer
from trainers.tasks.moe_language_model import MoeLanguageModel

WIDTH, INNER, EXPERTS = 8, 12, 5
SIZES = {"width": 16, "layers": 3, "heads": 2, "key_value_heads": 1}


def mixture(top_k: int) -> MixtureOfExperts:
    torch.manual_seed(0)
    layer = MixtureOfExperts(WIDTH, INNER, EXPERTS, top_k, Alone())
    layer.initialise(0.5, 0.5)
    return layer


def by_definition(layer: MixtureOfExperts, row: torch.Tensor) -> torch.Tensor:
    """One token: each chosen expert's answer times its gate."""
    probabilities = (layer.router.weight @ row).softmax(0)
    chosen = probabilities.argsort(descending=True)[: layer.router.top_k].tolist()
    total = sum(probabilities[expert] for expert in chosen) if len(chosen) > 1 else 1.0
    gate, up, down = layer.experts.gate, layer.experts.up, layer.experts.down
    answers = [down[expert] @ (silu(gate[expert] @ row) * (up[expert] @ row)) for expert in chosen]
    gates = [probabilities[expert] / total for expert in chosen]
    return torch.stack([answer * gate for answer, gate in zip(answers, gates, strict=True)]).sum(0)


@pytest.mark.parametrize("top_k", [1, 2, 3, EXPERTS])
def test_every_token_gets_what_its_experts_say_and_gradients_follow(top_k):
    layer = mixture(top_k)
    hidden = torch.randn(3, 7, WIDTH, requires_grad=True)
    expected = torch.stack([by_definition(layer, row) for row in hidden.flatten(0, 1)]).view_as(hidden)
    answers, weights = layer(hidden), torch.randn(3, 7, WIDTH)
    torch.testing.assert_close(answers, expected, atol=1e-5, rtol=1e-5)
    sources = [hidden, *layer.parameters()]
    gradients = (torch.autograd.grad((result * weights).sum(), sources) for result in (answers, expected))
    for got, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-4, rtol=1e-4)


def test_an_idle_expert_has_a_gradient_of_zero():
    layer = mixture(1)
    layer(torch.randn(1, 1, WIDTH)).sum().backward()
    idle = [expert for expert in range(EXPERTS) if not layer.experts.gate.grad[expert].any()]
    assert len(idle) == EXPERTS - 1


def test_the_balance_loss_is_one_at_best_and_as_many_as_experts_at_worst():
    uniform = torch.full((6, 3), 1 / 3)
    assert float(balance_loss(uniform, np.array([4, 4, 4]))) == pytest.approx(1)
    settled = torch.tensor([[0.0, 1.0, 0.0]] * 6)
    assert float(balance_loss(settled, np.array([0, 6, 0]))) == pytest.approx(3)
    mixed = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.6, 0.3]])
    assert float(balance_loss(mixed, np.array([1, 3, 0]))) == pytest.approx(3 * (0.25 * 0.3 + 0.75 * 0.425))


@given(keys=st.lists(st.integers(0, 6), max_size=30))
def test_groups_are_in_order_and_can_be_undone(keys):
    grouping = Grouping.by(torch.tensor(keys, dtype=torch.int64))
    rows = torch.arange(len(keys), dtype=torch.float64)[:, None].requires_grad_()
    made = grouping.made(rows)
    assert made[:, 0].tolist() == sorted(range(len(keys)), key=keys.__getitem__)
    assert torch.equal(grouping.undone(made), rows)
    weights = torch.rand(len(keys), 1, dtype=torch.float64)
    (made * weights).sum().backward()
    assert torch.equal(rows.grad[grouping.order], weights)


def test_arriving_rows_know_their_expert():
    counts = np.array([[2, 0, 1], [0, 1, 1]])
    assert expert_of_rows(counts).tolist() == [0, 0, 2, 1, 2]


def test_skew_is_the_largest_part_of_the_mean():
    assert skew(np.array([2, 2, 2])) == 1
    assert skew(np.array([6, 0, 0])) == 3
    assert skew(np.array([0, 0])) == 1


def test_load_is_summed_over_layers_and_averaged_over_passes():
    loads = [Load(), Load()]
    for load, expert in ((loads[0], 0), (loads[1], 1)):
        for _ in range(3):
            table = np.zeros((2, 2), np.int64)
            table[:, expert] = 4
            load.add(table, table, row_bytes=10, balance=1.5)
    numbers = summary(loads)
    assert numbers["experts/expert_skew"] == numbers["experts/rank_skew"] == 2
    assert numbers["experts/balance_loss"] == 1.5
    assert numbers["experts/dispatched_bytes"] == 2 * 40
    assert summary([Load(), Load()]) == {}


def test_every_few_layers_are_mixtures():
    model = MoeTransformer(256, Alone(), **SIZES, every=2)
    kinds = [type(block.feed_forward) for block in model.blocks]
    assert kinds == [SwiGLU, MixtureOfExperts, SwiGLU]


def test_one_expert_is_the_dense_model():
    dense, sparse = Transformer(256, **SIZES), MoeTransformer(256, Alone(), **SIZES, experts=1, top_k=1)
    state = {}
    for name, tensor in dense.state_dict().items():
        part = re.sub(r"feed_forward\.(\w+)\.weight", r"feed_forward.experts.\1", name)
        state[part] = tensor[None] if part != name else tensor
    missing, unexpected = sparse.load_state_dict(state, strict=False)
    assert not unexpected
    assert all(name.endswith("router.weight") for name in missing)
    tokens = torch.randint(256, (2, 11))
    torch.testing.assert_close(sparse(tokens), dense(tokens))


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ({"experts": 2, "top_k": 3}, "model.top_k is 3"),
        ({"top_k": 0}, "model.top_k is 0"),
        ({"every": 4}, "model.every is 4"),
        ({"experts": 0, "top_k": 1}, "model.top_k is 1"),
    ],
)
def test_sizes_that_cannot_work_are_refused(sizes, sentence):
    with pytest.raises(ValueError, match=sentence):
        MoeTransformer(256, Alone(), **SIZES, **sizes)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_a_lone_rank_trains_and_takes_its_state_up_again(precision):
    def trainer() -> Trainer:
        task = MoeLanguageModel(partial(MoeTransformer, **SIZES), data=__file__, context=16)
        return Trainer(task, partial(torch.optim.AdamW), TrainerOptions(4, clip=1.0, precision=precision))

    first = trainer()
    losses = first.train([1e-2] * 30)
    assert losses[-1] < losses[0] - 1
    kept = first.snapshot()
    expected = first.train([1e-2] * 3), first.weights_sha256()
    other = trainer()
    other.restore(kept)
    assert (other.train([1e-2] * 3), other.weights_sha256()) == expected


def test_only_training_adds_the_balance_loss():
    task = MoeLanguageModel(partial(MoeTransformer, **SIZES), data=__file__, context=16, balance=100.0)
    trainer = Trainer(task, partial(torch.optim.SGD), TrainerOptions(4))
    assert trainer.validate()["loss"] < 10 < trainer.train([0.0])[0]
