"""Attention of one decoding step over runs of slots: compiled on the CPU in float32, torch for everything else."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.generation.runs import Runs
from trainers.generation.threads import in_shares, shares_of


def attend_runs(queries: NDArray[np.float32], keys: Tensor, values: Tensor, runs: Runs) -> NDArray[np.float32]:
    """softmax(q·k / √width) v over each row's runs.

    queries: (batch, heads, width); keys, values: (key_value_heads, slots, width), contiguous; runs: batch ×
    key_value_heads rows, each at least a token long. Heads of a group attend to what their key-value head's row reads.
    Returns (batch, heads, width). On the CPU as many threads work as torch may use.
    """
    if keys.device.type == "cpu" and keys.dtype == torch.float32:
        return _compiled(queries, keys, values, runs)
    return attend_runs_torch(queries, keys, values, runs)


def _compiled(queries: NDArray[np.float32], keys: Tensor, values: Tensor, runs: Runs) -> NDArray[np.float32]:
    from trainers.generation.attention_kernel import LOWEST, attend_share, merge_shares  # numba loads slowly

    rows = _by_row(queries, runs)
    edges = np.concatenate([[0], np.cumsum(runs.tokens())])
    shares = shares_of(int(edges[-1]) * rows[0].size)
    shape = (runs.rows + shares - 1, rows.shape[1])
    highest, total = np.full(shape, LOWEST), np.zeros(shape, np.float32)
    summed = np.zeros((*shape, rows.shape[2]), np.float32)
    stored = rows, keys.numpy(), values.numpy(), runs.starts, runs.lengths, runs.offsets
    in_shares(lambda share: attend_share(share, shares, *stored, edges, highest, total, summed), shares)
    return merge_shares(shares, edges, highest, total, summed).reshape(queries.shape)


def attend_runs_torch(queries: NDArray[np.float32], keys: Tensor, values: Tensor, runs: Runs) -> NDArray[np.float32]:
    """`attend_runs` on any device and in any float type, by gathering what each row reads."""
    slots, there = _padded(runs)
    rows = torch.arange(runs.rows, device=keys.device)[:, None] % keys.shape[0]
    gathered = torch.from_numpy(slots).to(keys.device)
    mask = torch.from_numpy(there).to(keys.device)[:, None]
    scaled = torch.from_numpy(_by_row(queries, runs)).to(keys.device)
    scores = scaled @ keys[rows, gathered].float().transpose(1, 2)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    attended = (weights @ values[rows, gathered].float()).cpu().numpy()
    return np.asarray(attended, np.float32).reshape(queries.shape)


def _by_row(queries: NDArray[np.float32], runs: Runs) -> NDArray[np.float32]:
    """Queries (batch, heads, width) as scaled ones (rows, group, width)."""
    width = queries.shape[-1]
    return np.ascontiguousarray(queries, np.float32).reshape(runs.rows, -1, width) * np.float32(1 / math.sqrt(width))


def _padded(runs: Runs) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Slots (rows, most tokens of a row) that rows read, 0 where a row reads no more, and where it does."""
    tokens = runs.tokens()
    first_of_run = np.cumsum(runs.lengths) - runs.lengths
    line = np.repeat(runs.starts - first_of_run, runs.lengths) + np.arange(runs.lengths.sum())
    there = np.arange(tokens.max()) < tokens[:, None]
    slots = np.zeros(there.shape, np.int64)
    slots[there] = line
    return slots, there
