"""Whether gradients travel by plan, and from which size on: sums both ways in turn, then whole steps."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from math import inf

from comm_plans.sizes import shown_bytes, shown_seconds
from orchestrator.config import Config
from orchestrator.decide.bench import FASTER, STEPS, Bench, Tryable, all_steps
from orchestrator.decide.budget import REINVESTED
from orchestrator.decide.finding import Finding, nothing
from orchestrator.plan_choice import PlanChoice

BACKEND = {"communication.method": "backend"}
ROUNDS = 2
PARTS = (16, 4)  # of all gradients, that are summed where all of them are summed faster by plan
SMALLEST = 2**12  # bytes
TURNS = (True, False, True, False, True)  # of whole steps: by plan or not
_LATER_STEPS = len(TURNS) * (STEPS + 1) + 2 * ROUNDS * sum(1 / part for part in PARTS)  # that the second look takes


@dataclass(frozen=True)
class Sums:
    """Seconds of sums of so many bytes, by either way."""

    sizes: Sequence[int]
    planned: Sequence[float]
    backend: Sequence[float]

    @classmethod
    def tried(cls, job: Tryable, sizes: Sequence[int]) -> "Sums":
        """The quickest of the rounds: what else the machine does only ever makes them longer."""
        seconds = job.trial_sums(sizes, ROUNDS)
        return cls(sizes, *([min(rounds) for rounds in seconds[way]] for way in ("planned", "backend")))

    def __add__(self, other: "Sums") -> "Sums":
        """Those of smaller sizes first."""
        return Sums(*([*mine, *others] for mine, others in zip(astuple(self), astuple(other), strict=True)))

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
    saving = bench.exposed * all_steps(bench.config)
    if not bench.budget.allows(2 * ROUNDS * bench.seconds, saving):
        share = f"{bench.exposed / bench.seconds:.0%} of a step"
        return nothing(f"gradients are waited for in {share}, too little to measure in this run", BACKEND)
    whole = bench.job.gradient_bytes()
    sums = Sums.tried(bench.job, [whole])
    bench.job.go_by_plan_from(None)
    if sums.threshold() is None:
        return Finding(BACKEND, sums.evidence(), 1.0, sums.words())
    saving = min(saving, (sums.backend[0] - sums.planned[0]) * all_steps(bench.config))
    if not bench.budget.allows(_LATER_STEPS * bench.seconds - REINVESTED * saving, saving):
        return Finding(BACKEND, sums.evidence(), 1.0, f"{sums.words()}, too little to gain in this run")
    return _by_plan(bench, sums)


def _by_plan(bench: Bench, whole: Sums) -> Finding:
    """From which size on, and what that makes of whole steps."""
    sizes = sorted({max(SMALLEST, whole.sizes[0] // part // 4 * 4) for part in PARTS})
    sums = Sums.tried(bench.job, [size for size in sizes if size < whole.sizes[0]]) + whole
    threshold = sums.threshold()
    before, after = _steps(bench, threshold)
    evidence = {**sums.evidence(), "backend_step_seconds": before, "planned_step_seconds": after}
    words = f"{sums.words()}; a step {shown_seconds(after)} instead of {shown_seconds(before)}"
    if before < after * FASTER:
        bench.job.go_by_plan_from(None)
        return Finding(BACKEND, evidence, 1.0, f"{words}, which is no gain")
    for replica in bench.replicas:
        replica.go_by_plan_from(threshold)
    bench.exposed = max(0.0, bench.exposed - before + after)
    bench.seconds = after
    chosen = {"communication.method": "planned", "communication.threshold_bytes": threshold}
    return Finding(chosen, evidence, before / after, words)


def _steps(bench: Bench, threshold: int | None) -> tuple[float, float]:
    """Seconds of a step by the backend and by plan, in turn; plans are on afterwards."""
    seconds = {None: bench.seconds, threshold: inf}
    for way in (threshold if by_plan else None for by_plan in TURNS):
        bench.job.go_by_plan_from(way)
        seconds[way] = min(seconds[way], bench.step_seconds())
    return seconds[None], seconds[threshold]
