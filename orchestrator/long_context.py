"""What is asked of a language model at long context: as options, whether it can be met, and its cost in words."""

from dataclasses import asdict

from orchestrator.config import Config
from orchestrator.errors import UserError
from orchestrator.words import count_text
from trainers.errors import DataError
from trainers.generation.evaluation.check import cache_of
from trainers.generation.evaluation.check import check_long_context as check
from trainers.generation.evaluation.options import LongContextOptions


def long_context_options(config: Config) -> LongContextOptions | None:
    """The options, if it is scored."""
    wanted = config.evaluation.long_context
    return LongContextOptions(**asdict(wanted)) if wanted else None


def check_long_context(config: Config) -> None:
    """Raise UserError for options that the task, its data or this machine's memory can't meet."""
    options = long_context_options(config)
    try:
        if options is not None:
            check(options, config.task)
    except DataError as error:
        raise UserError(str(error)) from error


def long_context_cost(config: Config, stages: int) -> str:
    """What scoring takes, in words. Raises UserError as `check_long_context` does."""
    check_long_context(config)
    options = long_context_options(config)
    assert options is not None
    cache = cache_of(options, config.task)
    stored = f"; {cache.statement()}" if cache else ""
    times = f"{count_text(stages, 'time')}: " if config.evaluation.at_stage_end else ""
    return f"{times}{options.stored:,} tokens of prompts on one worker, the others wait{stored}"
