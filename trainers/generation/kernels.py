"""Attention of one decoding step over runs of slots: compiled on the CPU in float32, torch for everything else."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.generation.runs import Runs
from trainers.threads import in_shares, shares_of


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
    from trainers.generation.attention_kernel import attend_share, merge_shares, room_for  # numba loads slowly

    known = runs.known
    shares = shares_of(int(runs.lengths.sum()) * queries.shape[1] // len(keys) * keys.shape[2])
    rows, edges, *parts = room_for(np.ascontiguousarray(queries, np.float32), runs.lengths, runs.offsets, shares)
    stored = keys.numpy(), values.numpy(), runs.starts, runs.lengths, runs.offsets, known.places, known.values
    in_shares(lambda share: attend_share(share, shares, rows, *stored, edges, *parts), shares)
    return merge_shares(shares, edges, *parts).reshape(queries.shape)


def attend_runs_torch(queries: NDArray[np.float32], keys: Tensor, values: Tensor, runs: Runs) -> NDArray[np.float32]:
    """`attend_runs` on any device and in any float type, by gathering what each row reads."""
    slots, there = _padded(runs)
    rows = torch.arange(runs.rows, device=keys.device)[:, None] % keys.shape[0]
    gathered = torch.from_numpy(slots).to(keys.device)
    mask = torch.from_numpy(there).to(keys.device)[:, None]
    asked = torch.from_numpy(queries).to(keys.device).reshape(runs.rows, -1, keys.shape[2]) / math.sqrt(keys.shape[2])
    scores = asked @ keys[rows, gathered].float().transpose(1, 2)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    attended = (weights @ values[rows, gathered].float()).cpu().numpy()
    return np.asarray(attended, np.float32).reshape(queries.shape)


def _padded(runs: Runs) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Slots (rows, most tokens of a row) that rows read, 0 where a row reads no more, and where it does."""
    tokens = runs.tokens()
    first_of_run = np.cumsum(runs.lengths) - runs.lengths
    line = np.repeat(runs.starts - first_of_run, runs.lengths) + np.arange(runs.lengths.sum())
    there = np.arange(tokens.max()) < tokens[:, None]
    slots = np.zeros(there.shape, np.int64)
    slots[there] = line
    return slots, there
