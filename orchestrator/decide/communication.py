"""Whether gradients travel by plan, and from which size on: sums both ways in turn, then whole steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from comm_plans.sizes import shown_bytes, shown_seconds
from orchestrator.config import Config
from orchestrator.decide.bench import FASTER, Bench
from orchestrator.decide.finding import Finding, nothing
from orchestrator.plan_choice import PlanChoice

BACKEND = {"communication.method": "backend"}
ROUNDS = 3
PARTS = (16, 4, 1)  # of all gradients, that are summed at once
SMALLEST = 2**12  # bytes
_SUMS = 1 + 2 * ROUNDS * sum(1 / part for part in PARTS)  # of all gradients, that trials come to


@dataclass(frozen=True)
class Sums:
    """Median seconds of sums of so many bytes, by either way."""

    sizes: Sequence[int]
    planned: Sequence[float]
    backend: Sequence[float]

    @classmethod
    def of(cls, sizes: Sequence[int], seconds: Mapping[str, list[list[float]]]) -> "Sums":
        """From what the rounds took."""
        return cls(sizes, *([median(rounds) for rounds in seconds[way]] for way in ("planned", "backend")))

    def threshold(self) -> int | None:
        """The least size from which on plans stay clearly faster; None where they are not."""
        chosen = None
        for size, planned, backend in reversed([*zip(self.sizes, self.planned, self.backend, strict=True)]):
            if planned * FASTER > backend:
                break
            chosen = size
        return chosen

    def evidence(self) -> dict[str, float]:
        """Seconds by way and size."""
        pairs = {"planned": self.planned, "backend": self.backend}
        return {
            f"{way}_seconds_{size}": each
            for way, seconds in pairs.items()
            for size, each in zip(self.sizes, seconds, strict=True)
        }

    def words(self) -> str:
        """What the largest took."""
        planned, backend = shown_seconds(self.planned[-1]), shown_seconds(self.backend[-1])
        return f"{shown_bytes(self.sizes[-1])} of gradients take {planned} by plan, {backend} by the backend"


def can_go_by_plan(config: Config) -> bool:
    """Whether there are gradients that plans could carry: between workers, and on CPUs."""
    return config.cluster.workers > 1 and not config.cluster.gpus_per_worker


def communication(bench: Bench, choice: PlanChoice) -> Finding:
    """By plan or not, done so on all copies. The group goes by the backend when this is called."""
    if not choice.plans:
        return nothing("; ".join(choice.remarks) or "there are no two workers on CPUs to plan for", BACKEND)
    steps, saving = bench.run_seconds / bench.seconds, bench.exposed / bench.seconds * bench.run_seconds
    if not bench.budget.allows(_SUMS * bench.seconds, saving):
        share = bench.exposed / bench.seconds
        return nothing(f"gradients are waited for in {share:.0%} of {steps:,.0f} steps, too little to measure", BACKEND)
    return _measured(bench)


def _measured(bench: Bench) -> Finding:
    whole = bench.job.gradient_bytes()
    sizes = sorted({max(SMALLEST, whole // part // 4 * 4) for part in PARTS})
    sums = Sums.of(sizes, bench.job.trial_sums(sizes, ROUNDS))
    threshold = sums.threshold()
    bench.job.go_by_plan_from(threshold)
    if threshold is None:
        return Finding(BACKEND, sums.evidence(), 1.0, sums.words())
    before, after = bench.seconds, bench.step_seconds()
    evidence = {**sums.evidence(), "backend_step_seconds": before, "planned_step_seconds": after}
    words = f"{sums.words()}; a step {shown_seconds(after)} instead of {shown_seconds(before)}"
    if before < after * FASTER:
        bench.job.go_by_plan_from(None)
        return Finding(BACKEND, evidence, 1.0, f"{words}, which is no gain")
    for replica in bench.replicas:
        replica.go_by_plan_from(threshold)
    bench.exposed -= before - after
    bench.seconds = after
    chosen = {"communication.method": "planned", "communication.threshold_bytes": threshold}
    return Finding(chosen, evidence, before / after, words)
