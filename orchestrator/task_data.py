"""Whether a task's data are there, told as a person's error before anything starts."""

from orchestrator.config import Config
from orchestrator.errors import UserError
from trainers.data.check import check_data
from trainers.errors import DataError


def check_task_data(config: Config) -> None:
    """Raise UserError for data that the task would end with later."""
    try:
        check_data(config.task)
    except DataError as error:
        raise UserError(str(error)) from error
