"""Small Llama files for tests, written by the package `gguf`, with random weights and a byte-level vocabulary."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np

MERGES = ["t h", "th e", "Ġ the", "i n", "Ġ t"]
CONTROL = ["<|start|>", "<|end|>"]


def alphabet() -> list[str]:
    """The characters that stand for the 256 bytes in words of a byte-level vocabulary, by byte."""
    selves = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in selves]
    return [chr(byte) if byte in selves else chr(256 + others.index(byte)) for byte in range(256)]


def tensors(
    width: int = 64, layers: int = 2, heads: int = 4, shared: int = 2, inner: int = 96, tied: bool = True, seed: int = 0
) -> dict[str, np.ndarray]:
    """Random weights by their names in a file."""
    rng = np.random.default_rng(seed)
    vocabulary, each = 256 + len(MERGES) + len(CONTROL), width // heads
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (vocabulary, width), "output_norm": (width,)}
    shapes |= {} if tied else {"output": (vocabulary, width)}
    for layer in range(layers):
        matrices = {"attn_q": (width, width), "attn_k": (shared * each, width), "attn_v": (shared * each, width)}
        matrices |= {"attn_output": (width, width), "ffn_gate": (inner, width), "ffn_up": (inner, width)}
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in matrices.items()}
        shapes |= {f"blk.{layer}.ffn_down": (width, inner)}
        shapes |= {f"blk.{layer}.attn_norm": (width,), f"blk.{layer}.ffn_norm": (width,)}
    return {
        f"{name}.weight": (rng.normal(0, 0.2, shape) if len(shape) == 2 else rng.uniform(0.5, 1.5, shape)).astype("f4")
        for name, shape in shapes.items()
    }


def write(
    path: Path,
    weights: dict[str, np.ndarray],
    kind: str = "F32",
    heads: int = 4,
    shared: int = 2,
    architecture: str = "llama",
    more: dict[str, Any] | None = None,
) -> Path:
    """A file with these weights, matrices in the type `kind`. more: further metadata, text or whole numbers."""
    width = weights["token_embd.weight"].shape[1]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_block_count(sum(name.endswith("attn_q.weight") for name in weights))
    writer.add_context_length(256)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(len(weights["blk.0.ffn_up.weight"]))
    writer.add_head_count(heads)
    writer.add_head_count_kv(shared)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(5000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    words = [*alphabet(), *(merge.replace(" ", "") for merge in MERGES), *CONTROL]
    writer.add_token_list(words)
    writer.add_token_types([1] * (len(words) - len(CONTROL)) + [3] * len(CONTROL))
    writer.add_token_merges(MERGES)
    writer.add_eos_token_id(words.index("<|end|>"))
    for key, value in (more or {}).items():
        (writer.add_string if isinstance(value, str) else writer.add_uint32)(key, value)
    chosen = gguf.GGMLQuantizationType[kind]
    for name, values in weights.items():
        stored = gguf.quantize(values, chosen) if values.ndim == 2 else values
        writer.add_tensor(name, stored, raw_dtype=chosen if values.ndim == 2 else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
