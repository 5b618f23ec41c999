"""The models compute what their names say."""

import pytest
import torch
from torch.nn.functional import softmax

from trainers.models.convnet import ConvNet
from trainers.models.mlp import Mlp
from trainers.models.transformer import Attention, Sizes, Transformer, rotate, rotations

CPU = torch.device("cpu")


def small_transformer(**sizes) -> Transformer:
    torch.manual_seed(0)
    return Transformer(50, **{"width": 32, "layers": 2, "heads": 4, "key_value_heads": 2} | sizes).eval()


def small_attention(key_value_heads: int) -> Attention:
    return Attention(0, Sizes(32, 4, key_value_heads, head_width=8, inner=96, norm_eps=1e-6, dropout=0.0))


def test_the_future_does_not_change_the_past():
    model = small_transformer()
    tokens = torch.randint(50, (2, 12))
    changed = tokens.clone()
    changed[:, 7:] = (changed[:, 7:] + 1) % 50
    before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :7], after[:, :7])
    assert (before[:, 7] - after[:, 7]).abs().max() > 1e-3


@pytest.mark.parametrize("key_value_heads", [1, 2, 4])
def test_attention_equals_its_formula(key_value_heads):
    torch.manual_seed(1)
    heads, time = 4, 9
    attention = small_attention(key_value_heads)
    hidden, rotation = torch.randn(3, time, 32), rotations(torch.arange(time), 8)
    queries, keys, values = (
        projection(hidden).split(8, dim=-1) for projection in (attention.queries, attention.keys, attention.values)
    )
    mask = torch.full((time, time), -torch.inf).triu(1)
    outcomes = []
    for head in range(heads):
        shared = head // (heads // key_value_heads)
        query, key = rotate(queries[head], rotation), rotate(keys[shared], rotation)
        attended = softmax(query @ key.transpose(1, 2) / 8**0.5 + mask, dim=-1)
        outcomes.append(attended @ values[shared])
    torch.testing.assert_close(attention(hidden, rotation), attention.output(torch.cat(outcomes, dim=-1)))


def test_grouped_heads_equal_as_many_heads_with_repeated_keys_and_values():
    grouped, full = small_attention(2), small_attention(4)
    weights = grouped.state_dict()
    for name in ("keys.weight", "values.weight"):
        weights[name] = weights[name].view(2, 1, 8, 32).expand(2, 2, 8, 32).reshape(32, 32)
    full.load_state_dict(weights)
    hidden, rotation = torch.randn(2, 5, 32), rotations(torch.arange(5), 8)
    torch.testing.assert_close(grouped(hidden, rotation), full(hidden, rotation))


def test_rotated_products_depend_on_the_distance_alone():
    rotation = rotations(torch.arange(40), 16)
    query, key = torch.randn(16), torch.randn(16)
    products = rotate(query.expand(40, 16), rotation) @ rotate(key.expand(40, 16), rotation).T
    for distance in (-7, 0, 3):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-4, rtol=1e-4)
    assert products.diagonal(0)[0] != pytest.approx(products.diagonal(3)[0].item(), abs=1e-3)


def test_rotation_starts_at_none_and_keeps_lengths():
    heads, rotation = torch.randn(2, 30, 8), rotations(torch.arange(30), 8)
    turned = rotate(heads, rotation)
    torch.testing.assert_close(turned[:, 0], heads[:, 0])
    torch.testing.assert_close(turned.norm(dim=-1), heads.norm(dim=-1))


def test_embedding_and_output_are_one_matrix():
    names = [name for name, parameter in small_transformer().named_parameters() if 50 in parameter.shape]
    assert names == ["embedding.weight"]


def test_a_fresh_model_guesses_evenly():
    model = small_transformer()
    tokens = torch.randint(50, (4, 20))
    loss = torch.nn.functional.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    assert loss.item() == pytest.approx(torch.tensor(50.0).log().item(), abs=0.1)


def test_sizes_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match=r"model.width is 30; it must be a multiple of 2 × model.heads = 8"):
        small_transformer(width=30)
    with pytest.raises(ValueError, match=r"model.heads is 4; it must be a multiple of model.key_value_heads = 3"):
        small_transformer(key_value_heads=3)


@pytest.mark.parametrize("size", [(8, 8), (28, 28), (9, 13)])
def test_the_convolutional_net_takes_images_of_any_size(size):
    assert ConvNet(channels=3, size=size, classes=7, width=4)(torch.randn(2, 3, *size)).shape == (2, 7)


def test_the_convolutional_net_refuses_images_it_would_halve_away():
    with pytest.raises(ValueError, match="images are 3 × 9 pixels"):
        ConvNet(channels=1, size=(3, 9), classes=2)


def test_the_perceptron_has_the_layers_asked_for():
    model = Mlp(features=5, outputs=3, width=8, layers=2)
    assert [tuple(p.shape) for p in model.parameters() if p.dim() == 2] == [(8, 5), (8, 8), (3, 8)]
    assert model(torch.randn(4, 5)).shape == (4, 3)
