"""Decode attention of one layer: choosing and reading clusters against reading all, by the time of one thread.

Keys lie around random centres, queries are new in every step, and their scale is set so that Tactic reads the share of
tokens that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from benchmark_parts.generation.kernels import DENSE
from benchmark_parts.generation.rows import Row, row
from benchmark_parts.generation.timing import Samples, kept

from trainers.generation.kernels import attend_runs
from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.full import FullReader
from trainers.generation.sparse_attention.method import LayerStore, Reader
from trainers.generation.sparse_attention.selection import Floats
from trainers.generation.sparse_attention.tactic import Tactic

SHARES = (0.1, 0.3)
KEY_VALUE_HEADS, HEADS, WIDTH = 4, 16, 64
SPREAD = 0.3
TRIED = 16  # queries by which a scale is judged


def one_layer_rows(context: int, steps: int) -> Iterator[Row]:
    """For each share of tokens read, every way's samples, interleaved."""
    random = np.random.default_rng(0)
    store = _store(context, random)
    tactic, full = Tactic(0.9, dense_share=1.0, audit_every=0).reader(0, store, torch.empty(0)), FullReader(store)
    queries = random.standard_normal((steps, HEADS, WIDTH), np.float32)
    for share in SHARES:
        scaled = queries * _scale(tactic, queries[:TRIED], share * context)
        samples = {name: Samples() for name in (*DENSE, "Tactic")}
        read = []
        for query in scaled:
            runs = full.select(query)
            for name, kernel in DENSE.items():
                samples[name].time(kernel, query[None], store.keys, store.values, runs)
            chosen = samples["Tactic"].time(_step, tactic, query, store)
            read.append(float(chosen.tokens().mean()))
        for name, milliseconds in kept(samples).items():
            tokens = float(np.mean(read)) if name == "Tactic" else float(context)
            yield row(
                part="one layer", context=context, method=name, steps=steps, read=tokens, milliseconds=milliseconds,
                note=note_of(share),
            )  # fmt: skip


def _step(tactic: Reader, query: Floats, store: LayerStore) -> Runs:
    """Choose and attend; returns what is read."""
    chosen = tactic.select(query)
    attend_runs(query[None], store.keys, store.values, chosen)
    return chosen


def note_of(share: float) -> str:
    """What a row says of the share of tokens that Tactic reads."""
    return f"{share:.0%} read, choosing included"


def _store(context: int, random: np.random.Generator) -> LayerStore:
    centres = random.standard_normal((KEY_VALUE_HEADS, context // 64, WIDTH), np.float32)
    owners = random.integers(0, context // 64, (KEY_VALUE_HEADS, context))
    noise = random.standard_normal((KEY_VALUE_HEADS, context, WIDTH), np.float32)
    keys = np.take_along_axis(centres, owners[..., None], 1) + np.float32(SPREAD) * noise
    values = random.standard_normal(keys.shape, np.float32)
    return LayerStore(torch.from_numpy(keys), torch.from_numpy(values), 0, context)


def _scale(reader: Reader, queries: Floats, tokens: float) -> np.float32:
    """By how much queries are stretched so that so many tokens are read: the sharper attention, the fewer."""
    low, high = 0.2, 8.0
    for _ in range(14):
        middle = np.float32(np.sqrt(low * high))
        read = np.mean([reader.select(query * middle).tokens().mean() for query in queries])
        low, high = (middle, high) if read > tokens else (low, middle)
    return np.float32(np.sqrt(low * high))
