"""A Llama computed plainly in numpy, in double precision, from the tensors of a file: what models are held against."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def logits(
    weight: Callable[[str], Array], tokens: list[int], layers: int, heads: int, shared: int, base: float, eps: float
) -> Array:
    """(time, vocabulary). weight: a tensor by its name without ".weight"."""
    hidden = weight("token_embd")[tokens]
    for layer in range(layers):
        block = f"blk.{layer}."
        normed = rms_norm(hidden, weight(block + "attn_norm"), eps)
        queries, keys, values = (normed @ weight(block + name).T for name in ("attn_q", "attn_k", "attn_v"))
        hidden = hidden + attention(queries, keys, values, heads, shared, base) @ weight(block + "attn_output").T
        normed = rms_norm(hidden, weight(block + "ffn_norm"), eps)
        gate = normed @ weight(block + "ffn_gate").T
        inner = gate / (1 + np.exp(-gate)) * (normed @ weight(block + "ffn_up").T)
        hidden = hidden + inner @ weight(block + "ffn_down").T
    try:
        output = weight("output")
    except KeyError:
        output = weight("token_embd")
    return rms_norm(hidden, weight("output_norm"), eps) @ output.T


def attention(queries: Array, keys: Array, values: Array, heads: int, shared: int, base: float) -> Array:
    """Head by head, token by token; `shared` key heads serve heads / shared query heads each."""
    width = queries.shape[1] // heads
    result = np.zeros_like(queries)
    for head in range(heads):
        own = slice(head * width, (head + 1) * width)
        group = head // (heads // shared)
        other = slice(group * width, (group + 1) * width)
        turned_queries, turned_keys = turned(queries[:, own], base), turned(keys[:, other], base)
        for time in range(len(queries)):
            scores = turned_keys[: time + 1] @ turned_queries[time] / np.sqrt(width)
            probabilities = np.exp(scores - scores.max())
            result[time, own] = probabilities / probabilities.sum() @ values[: time + 1, other]
    return result


def turned(vectors: Array, base: float) -> Array:
    """Each pair of neighbours of the vector at place p by the angle p · base^(-2i/width)."""
    time, width = vectors.shape
    angles = np.arange(time)[:, None] * base ** (-np.arange(0, width, 2) / width)
    first, second = vectors[:, 0::2], vectors[:, 1::2]
    result = np.empty_like(vectors)
    result[:, 0::2] = first * np.cos(angles) - second * np.sin(angles)
    result[:, 1::2] = first * np.sin(angles) + second * np.cos(angles)
    return result


def rms_norm(vectors: Array, gain: Array, eps: float) -> Array:
    return vectors / np.sqrt((vectors**2).mean(axis=-1, keepdims=True) + eps) * gain


def decoded(raw: NDArray[np.uint8], kind: str) -> Array:
    """Rows of bytes of a type as numbers: F32; Q8_0 and Q4_1 in blocks of 32 numbers with one scale each."""
    if kind == "F32":
        return np.ascontiguousarray(raw).view("<f4").astype(float)
    size = {"Q8_0": 34, "Q4_1": 20}[kind]
    blocks = raw.reshape(-1, size)
    scale = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(float)
    if kind == "Q8_0":
        numbers = scale * blocks[:, 2:].view(np.int8)
    else:
        least = np.ascontiguousarray(blocks[:, 2:4]).view("<f2").astype(float)
        numbers = least + scale * np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
    return numbers.reshape(*raw.shape[:-1], -1)
