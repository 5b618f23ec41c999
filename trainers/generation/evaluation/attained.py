"""How much of the attention mass a method attains with how many tokens, against the exact softmax of every step."""

from dataclasses import dataclass, field

import numpy as np

from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.full import FullReader
from trainers.generation.sparse_attention.method import LayerStore, Reader
from trainers.generation.sparse_attention.selection import Floats, attained


@dataclass
class Attained:
    """An observer of a decoder; layers that read all by plan are left out.

    masses: by query head, of every layer and step. shares: of the stored tokens, those that each key-value head reads.
    """

    masses: list[Floats] = field(default_factory=list)
    shares: list[Floats] = field(default_factory=list)

    def __call__(self, store: LayerStore, reader: Reader, queries: Floats, runs: Runs) -> None:
        if not isinstance(reader, FullReader):
            self.masses.append(attained(store, queries, runs))
            self.shares.append((runs.tokens() / store.length).astype(np.float32))

    def metrics(self) -> dict[str, float]:
        """mass_mean, mass_p5 (what 95 of 100 heads and steps attain), kept_share; 1 where all is read by plan."""
        masses, shares = (np.array(each) if each else np.ones(1) for each in (self.masses, self.shares))
        return {
            "mass_mean": float(masses.mean()),
            "mass_p5": float(np.percentile(masses, 5)),
            "kept_share": float(shares.mean()),
        }
