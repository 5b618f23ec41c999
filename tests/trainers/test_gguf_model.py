"""Models from GGUF files compute what the file says, by an independent computation in numpy."""

import gguf
import gguf_files
import numpy as np
import pytest
import torch
from llama_in_numpy import decoded, logits

from trainers.models.gguf import load_gguf, smollm2_path

TEXT = "In 2024 the committee met 13 times; it's all in the minutes, they said."


@pytest.fixture(scope="module")
def smollm2():
    return load_gguf("smollm2")


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(("heads", "shared"), [(4, 4), (4, 2), (2, 1)])
def test_logits_equal_those_in_numpy(tied, heads, shared, tmp_path):
    weights = gguf_files.tensors(heads=heads, shared=shared, tied=tied)
    loaded = load_gguf(gguf_files.write(tmp_path / "tiny.gguf", weights, heads=heads, shared=shared))
    tokens = loaded.tokenizer.encode(TEXT)
    expected = logits(lambda name: weights[f"{name}.weight"].astype(float), tokens, 2, heads, shared, 5000.0, 1e-5)
    with torch.no_grad():
        found = loaded.model(torch.tensor([tokens]))[0].double().numpy()
    np.testing.assert_allclose(found, expected, atol=2e-4 * np.abs(expected).max())
    assert (loaded.name, loaded.context, loaded.model.rope_base) == ("tiny", 256, 5000.0)


@pytest.mark.parametrize(
    ("kind", "step"), [("F16", 1e-3), ("BF16", 4e-3), ("Q8_0", 1e-2), ("Q5_0", 0.1), ("Q4_1", 0.15), ("Q4_0", 0.2)]
)
def test_weights_are_the_ones_that_were_stored(kind, step, tmp_path):
    weights = gguf_files.tensors()
    model = load_gguf(gguf_files.write(tmp_path / "tiny.gguf", weights, kind)).model
    for name, parameter in (("attn_k", "attention.keys"), ("ffn_down", "feed_forward.down")):
        stored = weights[f"blk.1.{name}.weight"]
        difference = model.get_parameter(f"blocks.1.{parameter}.weight").detach().numpy() - stored
        assert np.abs(difference).max() < step * np.abs(stored).max()


@pytest.mark.slow
def test_the_logits_of_smollm2_equal_those_in_numpy(smollm2):
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(smollm2_path()).tensors}

    def weight(name):
        tensor = stored[f"{name}.weight"]
        return decoded(np.atleast_1d(tensor.data).view(np.uint8), tensor.tensor_type.name)

    tokens = smollm2.tokenizer.encode(TEXT)
    expected = logits(weight, tokens, layers=30, heads=9, shared=3, base=100_000.0, eps=1e-5)
    with torch.no_grad():
        found = smollm2.model(torch.tensor([tokens]))[0].double().numpy()
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert found.argmax(-1).tolist() == expected.argmax(-1).tolist()


def test_smollm2_knows_something(smollm2):
    tokens = smollm2.tokenizer.encode("The capital of France is")
    with torch.no_grad():
        following = smollm2.model(torch.tensor([tokens]))[0, -1].argmax()
    assert smollm2.tokenizer.decode([int(following)]) == " Paris"
    assert smollm2.context == 8192
    assert not smollm2.model.training
