"""The progress line: stage, step, learning rate, losses, time left."""

from collections.abc import Callable

from orchestrator.decide.words import with_cost
from orchestrator.events import (
    ArmTakenUp,
    Decided,
    Event,
    ProbeRan,
    RangeChosen,
    RateChosen,
    Recovered,
    RunResumed,
    RunStarted,
    StepsTrained,
    Validated,
)
from orchestrator.words import clock_text, loss_text, rate_text


class Progress:
    """Follows a run's events. Time left assumes that the steps to come take as long as those so far."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.started: RunStarted | None = None
        self._clock = clock
        self._began: float | None = None  # when the first step was under way
        self._stage = 0
        self._stages = 0
        self._step = 0
        self._probed = 0  # steps of all probes
        self._tried = 0  # probes of this stage's search so far
        self._purpose: str | None = None  # of the probes under way
        self._taken = 0  # steps of this process, real and probed
        self._end: int | None = None  # real steps in all, once the only search is over
        self._rate: float | None = None
        self._train: float | None = None
        self._validation: float | None = None

    def note(self, event: Event) -> None:
        """Take one event into account."""
        match event:
            case RunStarted():
                self.started = event
                self._stages = event.cost.get("stages", 0)
            case Decided() if self.started is not None:
                self.started = with_cost(self.started, event)
            case RunResumed() | Recovered():
                self._step = event.step
            case ProbeRan():
                self._tried += 1
                self._purpose = event.purpose
                self._probed += len(event.rates)
                self._note_steps(event.stage, event.rates, event.train_losses, event.train_seconds)
            case RangeChosen() | RateChosen():
                self._tried, self._purpose = 0, None
                if isinstance(event, RateChosen) and self._stages == 1:
                    self._end = event.choice.steps
            case ArmTakenUp():
                self._step += len(event.rates)
                self._probed -= len(event.rates)
            case StepsTrained():
                self._tried, self._purpose = 0, None
                self._step = event.first_step + len(event.rates)
                self._note_steps(event.stage, event.rates, event.losses, event.seconds)
            case Validated() if event.split == "validation":
                self._validation = event.metrics["loss"]

    def line(self) -> str:
        """How things stand, in one line that fits 80 columns."""
        parts = [self._where(), f"step {self._step:,}/{self._total:,}"]
        if self._rate is not None:
            parts.append(f"lr {rate_text(self._rate)}")
        if self._train is not None:
            parts.append(f"train {loss_text(self._train)}")
        if self._validation is not None:
            parts.append(f"val {loss_text(self._validation)}")
        parts.append(self._left())
        return "  ".join(part for part in parts if part)

    @property
    def _total(self) -> int:
        return self._end or (int(self.started.cost.get("train_steps", 0)) if self.started else 0)

    @property
    def _total_probed(self) -> int:
        return int(self.started.cost.get("probe_steps", 0)) if self.started else 0

    def _note_steps(self, stage: int, rates: list[float], losses: list[float], seconds: float) -> None:
        self._began = self._clock() - seconds if self._began is None else self._began
        self._stage = stage
        self._taken += len(rates)
        if rates and losses:
            self._rate, self._train = rates[-1], sum(losses[-10:]) / len(losses[-10:])

    def _where(self) -> str:
        if self._purpose == "range_test":
            return "range test"
        if self._tried:
            return f"stage {self._stage} probe {self._tried}"
        return f"stage {self._stage}/{self._stages}" if self._stages > 1 else ""

    def _left(self) -> str:
        ahead = self._ahead()
        if self._began is None or not self._taken or not ahead:
            return ""
        return f"{clock_text((self._clock() - self._began) / self._taken * ahead)} left"

    def _ahead(self) -> int:
        search = 0 if self._end else max(0, self._total_probed - self._probed)
        return max(0, self._total - self._step) + search
