"""Dense attention of one step in three ways: the fastest of them is what sparse attention has to beat."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from trainers.generation.kernels import attend_runs
from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.selection import Floats


def bmm(queries: Floats, keys: Tensor, values: Tensor, runs: Runs) -> Floats:
    """All of `attend_runs`' first runs, by two batched products."""
    keys, values = (each[:, : runs.lengths[0]] for each in (keys, values))
    by_group = torch.from_numpy(queries).view(len(keys), -1, keys.shape[2])
    weights = (by_group @ keys.transpose(1, 2) / math.sqrt(keys.shape[2])).softmax(-1)
    return (weights @ values).reshape(queries.shape).numpy()


def sdpa(queries: Floats, keys: Tensor, values: Tensor, runs: Runs) -> Floats:
    """The same by torch's fused attention."""
    keys, values = (each[None, :, : runs.lengths[0]] for each in (keys, values))
    asked = torch.from_numpy(queries)[:, :, None]
    return scaled_dot_product_attention(asked, keys, values, enable_gqa=True)[:, :, 0].numpy()


DENSE = {"dense, compiled": attend_runs, "dense, bmm": bmm, "dense, SDPA": sdpa}
