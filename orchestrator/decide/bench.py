"""The gang on which things are tried out, and how fast the run would be as things stand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.config import Config
from orchestrator.decide.budget import Budget
from orchestrator.decide.recorded import changed
from orchestrator.events import Decided
from orchestrator.learning_rate import make_policy
from orchestrator.learning_rate.policy import Cost

STEPS = 2  # timed ones of a trial, after one for nothing
SHORT, MORE_STEPS = 0.02, 5  # seconds of a step so short that more of them are timed
FASTER = 1.03  # what is not faster by more is noise


class Tryable(Protocol):
    """What is needed of a job; `orchestrator.cluster.job.Job` is one, and says more of each."""

    def gradient_bytes(self) -> int:
        """Bytes of the gradients that a step sums over ranks."""

    def trial_seconds(self, steps: int, together: bool = True) -> list[float]:
        """Seconds of each of so many steps, of which nothing is left."""

    def trial_sums(self, sizes: Sequence[int], rounds: int) -> Mapping[str, list[list[float]]]:
        """Seconds of sums over ranks by plan and by the backend: by size, of each round."""

    def noise_scale(self, batches: int) -> float:
        """The gradient noise scale in samples."""

    def training_samples(self) -> int:
        """How many samples the training split has."""

    def memory(self) -> tuple[int, int]:
        """Bytes held at most, and bytes free."""

    def use_batch(self, batch_size: int) -> None:
        """Take batches of so many samples."""

    def go_by_plan_from(self, size_bytes: int | None) -> None:
        """Let gradients of so many bytes on go by plan."""

    def train(self, rates: Sequence[float]) -> list[float]:
        """One step a rate; the mean loss of each."""

    def keep(self, name: str) -> None:
        """Keep the whole state."""

    def rewind(self, name: str) -> None:
        """Return to a kept state."""

    def forget(self, name: str) -> None:
        """Give its memory back."""


@dataclass
class Bench:
    """`job` is tried out; what is decided is done on its `replicas` too.

    begun: when deciding did, by the monotonic clock. seconds: of a step as things stand; exposed: of these, those in
    which ranks wait for one another's gradients.
    """

    config: Config
    job: Tryable
    replicas: Sequence[Tryable]
    begun: float
    seconds: float
    exposed: float
    budget: Budget = field(init=False)

    def __post_init__(self) -> None:
        self.budget = Budget(self.begun, self.run_seconds, self.config.decide.seconds)

    @property
    def jobs(self) -> Sequence[Tryable]:
        """All copies of the training."""
        return (self.job, *self.replicas)

    @property
    def alone(self) -> float:
        """Seconds of a step without any communication."""
        return max(0.0, self.seconds - self.exposed)

    @property
    def run_seconds(self) -> float:
        """Of all steps of the run, the search for the rate included."""
        return self.seconds * all_steps(self.config)

    def step_seconds(self) -> float:
        """A step's, measured now."""
        return quickest(self.job)

    def follow(self, event: Decided) -> None:
        """Go on from what was decided."""
        self.config = changed(self.config, event.chosen)
        self.budget.saved += self.run_seconds * (event.gain - 1)


def quickest(job: Tryable, together: bool = True) -> float:
    """Seconds of a step: what else the machine does only ever makes it longer."""
    seconds = min(job.trial_seconds(STEPS, together))
    return min(seconds, *job.trial_seconds(MORE_STEPS, together)) if seconds < SHORT else seconds


def pace(job: Tryable, config: Config) -> tuple[float, float]:
    """Seconds of a step, and those of them in which ranks wait for one another's gradients."""
    seconds = quickest(job)
    alone = quickest(job, together=False) if config.cluster.workers > 1 else seconds
    return seconds, max(0.0, seconds - alone)


def trial_steps(seconds: float) -> int:
    """Steps that `quickest` takes where one is expected to take so many seconds."""
    return STEPS + 1 + (MORE_STEPS + 1 if seconds < SHORT else 0)


def all_steps(config: Config) -> int:
    """Steps of a run, those of its search included. UserError where its policy cannot do with so few."""
    cost = cost_of(config)
    return cost.train_steps + cost.probe_steps


def cost_of(config: Config) -> Cost:
    """What the run's policy will spend."""
    return make_policy(config.lr, config.steps, config.seed).cost()
