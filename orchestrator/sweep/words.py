"""What is said of trials: their values, their outcome in a line, the columns of the table."""

from collections.abc import Sequence

from orchestrator.run_state import RunState
from orchestrator.sweep.book import Trial
from orchestrator.sweep.space import value_text
from orchestrator.words import clock_text, loss_text


def values_text(trial: Trial) -> str:
    """`lr.rate=0.0032 batch_size=64`."""
    return " ".join(f"{key}={value_text(value)}" for key, value in trial.values.items())


def trial_line(trial: Trial, trials: int) -> str:
    """A trial's outcome in one line."""
    outcome = {
        RunState.FINISHED: f"validation loss {loss_text(trial.loss)}",
        RunState.KILLED: f"ended early at step {trial.steps:,}, validation loss {loss_text(trial.loss)}",
        RunState.FAILED: f"failed: {trial.reason}",
    }
    name = f"trial {trial.number + 1} of {trials}"
    return f"{name}  {values_text(trial)}  {outcome[RunState(trial.state)]}  {clock_text(trial.seconds)}"


def cells(trial: Trial, keys: Sequence[str]) -> list[str]:
    """A row of the table: number, values, state, steps, loss, time."""
    values = [value_text(trial.values[key]) for key in keys]
    time = clock_text(trial.seconds) if trial.seconds else ""
    return [str(trial.number + 1), *values, trial.state.lower(), f"{trial.steps:,}", loss_text(trial.loss), time]
