"""What a new run may learn from an earlier one: `lr.warm_start=RUN_FOLDER`, read as data."""

from pathlib import Path

from orchestrator.errors import UserError
from orchestrator.history import history
from orchestrator.journal_file import JOURNAL, read_journal


def chosen_rate(folder: Path) -> float:
    """The learning rate that the run in `folder` chose, the last one of several. UserError if it chose none."""
    stages = history(read_journal(folder / JOURNAL)).stages.values()
    choices = [stage.choice.rate for stage in stages if stage.choice is not None]
    if not choices:
        raise UserError(f"lr.warm_start={folder} is a run that chose no learning rate; name one of lr=autolrs")
    return choices[-1]
