"""Where on the axis of all steps, those of the search included, each loss of a run lies, told while the run goes on."""

from collections.abc import Iterator, Sequence

from orchestrator.events import ArmTakenUp, Event, ProbeRan, Recovered, RunResumed, StepsTrained, Validated
from orchestrator.history import append, history

Loss = tuple[int, float]
"""All steps taken when it was measured, and the loss."""


class AllSteps:
    """Takes a run's events in order. `earlier`: those of the processes before this one."""

    def __init__(self, earlier: Sequence[Event] = ()) -> None:
        self._events = list(earlier)
        self._story = history(self._events)

    def note(self, event: Event) -> None:
        """Take one more event into account, which may undo others."""
        self._events.append(event)
        if isinstance(event, ProbeRan | ArmTakenUp | RunResumed | Recovered):
            self._story = history(self._events)
        else:
            append(self._story, event)

    def train_losses(self, event: StepsTrained | ArmTakenUp) -> Iterator[Loss]:
        """Of real steps that have been noted: each loss where its step was taken, as a trial or not."""
        for step, loss in enumerate(event.losses, start=event.first_step + 1):
            yield self._story.total_steps(step), loss

    def validation_loss(self, event: Validated) -> Loss:
        """Of a validation."""
        return self._story.total_steps(event.step), event.metrics["loss"]
