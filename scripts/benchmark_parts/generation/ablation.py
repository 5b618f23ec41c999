"""What each part of Tactic contributes: the order of tokens, the estimate of mass, tokens that are always read.

The published recipe with one part after the other exchanged, over texts and, where clusters are drawn, seeds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean, stdev

from benchmark_parts.generation.prompts import TEXTS, stored
from benchmark_parts.generation.rows import Row, row

from trainers.generation.evaluation.side_by_side import comparison_on
from trainers.generation.sparse_attention.cluster_index import ClusterSettings
from trainers.generation.sparse_attention.method import Method
from trainers.generation.sparse_attention.published import PLAIN, PublishedTactic
from trainers.generation.sparse_attention.tactic import Tactic
from trainers.models.gguf import LoadedModel

TARGET = 0.9
WITH_ENDS = replace(PLAIN, sinks=16, recent=64)
VARIANTS = {
    "published: clusters, fit, no sinks": PublishedTactic(TARGET),
    "clusters, fit": PublishedTactic(TARGET, "fit", clusters=WITH_ENDS),
    "clusters, stratified": PublishedTactic(TARGET, "stratified", clusters=WITH_ENDS),
    "clusters, exact": PublishedTactic(TARGET, "exact", clusters=WITH_ENDS),
    "oracle, fit": PublishedTactic(TARGET, "fit", "oracle", WITH_ENDS),
    "oracle, stratified": PublishedTactic(TARGET, "stratified", "oracle", WITH_ENDS),
    "oracle, exact": PublishedTactic(TARGET, "exact", "oracle", WITH_ENDS),
    "Tactic as it is here": Tactic(TARGET, dense_share=1.0),
}


def ablation_rows(model: LoadedModel, context: int, steps: int, seeds: Sequence[int]) -> Iterator[Row]:
    """One row a variant, text and seed; for orders that know all, the first seed only."""
    for text in TEXTS:
        found = stored(model, text, context, steps)
        comparison = comparison_on(model.model, found.prompt, found.following[: steps + 1])
        for name, method in VARIANTS.items():
            for seed in seeds[:1] if name.startswith("oracle") else seeds:
                each = comparison.row(name, _seeded(method, seed))
                print(f"  ablation, {text}: {name}, seed {seed}: mass {each.mass_mean:.3f}", flush=True)
                yield row(
                    part="ablation", text=text, context=context, steps=steps, target=TARGET, method=name,
                    read=each.read, needed=each.needed, mass_mean=each.mass_mean, mass_p5=each.mass_p5, kl=each.kl,
                    note=f"seed {seed}",
                )  # fmt: skip


def _seeded(method: PublishedTactic | Tactic, seed: int) -> Method:
    clusters: ClusterSettings = replace(method.clusters, seed=seed)
    return replace(method, clusters=clusters)


def print_ablation(rows: Sequence[Row]) -> None:
    """Mean and half of the 95 % interval over texts and seeds (normal approximation) of each variant."""
    columns = ("mass_mean", "mass_p5", "needed", "kl")
    by_variant = defaultdict(list)
    for each in rows:
        by_variant[each["method"]].append(each)
    print(f"ablation, target {TARGET}")
    print(f"  {'':36}" + "".join(f"{column:>20}" for column in columns))
    for name, found in by_variant.items():
        cells = (_interval([each[column] for each in found]) for column in columns)
        print(f"  {name:36}" + "".join(f"{cell:>20}" for cell in cells))


def _interval(values: Sequence[float]) -> str:
    half = 1.96 * stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{fmean(values):.4g} ± {half:.2g}"
