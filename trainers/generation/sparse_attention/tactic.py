"""Tactic (arXiv 2502.12216): read the clusters of keys that hold the share of attention mass asked for, and no more.

Of the error of a head's output this is a bound: 2 (1 - mass) max ‖v‖.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from trainers.errors import GenerationError
from trainers.generation.runs import Runs, Scores
from trainers.generation.scoring import by_row
from trainers.generation.sparse_attention.audit import InnerTarget, Report, Trust
from trainers.generation.sparse_attention.choosing import choose
from trainers.generation.sparse_attention.cluster_index import ClusterIndex, ClusterSettings
from trainers.generation.sparse_attention.full import FullReader
from trainers.generation.sparse_attention.method import LayerStore, Method, Reader
from trainers.generation.sparse_attention.selection import Floats, mask_of
from trainers.generation.sparse_attention.settings import check_target


@dataclass(frozen=True)
class Tactic(Method):
    """target: share of each head's attention mass. samples: keys that a step scores to estimate a group's mass.

    dense_share: share of tokens from which on reading all is as fast; 1: all are never read. audit_every: steps between
    exact checks, each of one key-value head, with more of them in the beginning (0: no checks); what they find is in
    `report`. A layer that they find far below the target reads all until they no longer do. Raises GenerationError for
    a target outside (0, 1], and when keys are not on the CPU in float32.
    """

    target: float = 0.9
    clusters: ClusterSettings = field(default_factory=ClusterSettings)
    samples: int = 128
    dense_share: float = 0.35
    audit_every: int = 64
    report: Report = field(default_factory=Report)

    def __post_init__(self) -> None:
        check_target(self.target)

    def reader(self, layer: int, store: LayerStore, queries: Tensor) -> "TacticReader":
        return TacticReader(self, layer, store)


class TacticReader(Reader):
    """Reads clusters, or everything when that is as fast."""

    def __init__(self, method: Tactic, layer: int, store: LayerStore) -> None:
        self._method, self._layer, self._store = method, layer, store
        self._index = ClusterIndex(store, method.clusters, patience=layer)
        self._keys = _keys_on_cpu(store)
        self._everything = FullReader(store)
        self._target = InnerTarget(method.target)
        self._trust = Trust(method.target)
        self._phase = float(np.random.default_rng((method.clusters.seed, layer)).random())
        self._steps = self._audits = 0

    def select(self, queries: Floats) -> Runs:
        self._index.update()
        self._steps += 1
        self.needed = None
        if not self._index.means.shape[1] or not (self._trusted or self._audit_due):
            return self._everything.select(queries)
        runs, tokens = self._chosen(queries)
        if self._audit_due:
            self._audit(queries, runs)
        few = tokens <= self._method.dense_share * self._store.length * runs.rows
        return runs if few and self._trusted else self._everything.select(queries)

    @property
    def _trusted(self) -> bool:
        return self._trust.kept or self._method.dense_share == 1

    @property
    def _audit_due(self) -> bool:
        """At steps 1, 2, 4, 8 … at first; then layers audit at different steps."""
        every, steps = self._method.audit_every, self._steps
        return every > 0 and ((steps < every and steps.bit_count() == 1) or (steps + self._layer) % every == 0)

    def _chosen(self, queries: Floats) -> tuple[Runs, int]:
        """What clusters to read, and how many tokens that is."""
        index, phase = self._index, self._phase + self._steps * len(self._keys)
        starts, lengths, rows, places, scores, self.needed, tokens = choose(
            np.ascontiguousarray(queries), self._keys, index.means, index.starts, index.sizes, index.bounds,
            self._target.value, self._method.samples, phase,
        )  # fmt: skip
        return Runs(starts, lengths, rows, Scores(places, scores)), tokens

    def _audit(self, queries: Floats, runs: Runs) -> None:
        """One key-value head's exact attained masses; heads take turns."""
        row = self._audits % runs.rows
        self._audits += 1
        stored = slice(self._store.first, self._store.first + self._store.length)
        scores = self._keys[row, stored] @ by_row(np.ascontiguousarray(queries), runs.rows)[row].T
        weights = torch.from_numpy(scores).double().softmax(0).numpy()
        masses = weights[mask_of(runs, self._store)[row]].sum(0)
        self._method.report.add(self._layer, row * len(masses), masses)
        self._trust.learn(masses)
        for mass in masses:
            self._target.learn(float(mass))


def _keys_on_cpu(store: LayerStore) -> Floats:
    """A view of the layer's keys for compiled code."""
    if store.keys.device.type != "cpu" or store.keys.dtype != torch.float32:
        raise GenerationError(
            f"Tactic reads keys on the CPU in float32 and these are {store.keys.dtype} on {store.keys.device}; "
            "move the model to the CPU or choose full attention."
        )
    return store.keys.numpy()
