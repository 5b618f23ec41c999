"""Numbers and names as people read them: on the terminal, in reports and comparisons."""

import math
import re

from orchestrator.events import Json, RateLowered, Recovered
from orchestrator.learning_rate.dimensions import Settings


def rate_text(rate: float) -> str:
    """A learning rate, short: 0.0032 is `3.2e-3`."""
    if rate == 0 or not math.isfinite(rate):
        return str(rate)
    mantissa, exponent = f"{rate:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def settings_text(settings: Settings) -> str:
    """What differs from the configuration: `weight_decay × 0.1, batch_size × 2`."""
    names = {"momentum": "1 − momentum"}
    return ", ".join(f"{names.get(name, name)} × {factor:g}" for name, factor in settings.items())


def choice_text(rate: float, settings: Settings) -> str:
    """A rate, with what was chosen besides it."""
    return f"{rate_text(rate)} with {settings_text(settings)}" if settings else rate_text(rate)


def loss_text(loss: float | None) -> str:
    """A loss or score to four significant digits; a dash for one that was not measured."""
    if loss is None:
        return "–"
    if not math.isfinite(loss):
        return str(loss)
    return f"{loss:.3f}" if 0.1 <= abs(loss) < 1000 else f"{loss:.3g}"


def score_text(score: float) -> str:
    """A score of any size: whole numbers and large ones as `118` and `1,024`, others as a loss."""
    whole = float(score).is_integer() and abs(score) >= 10
    return f"{score:,.0f}" if whole or 1000 <= abs(score) < 1e9 else loss_text(score)


def duration_text(seconds: float) -> str:
    """`0.08 s`, `7.9 s`, `1 min 52 s`, `3 h 05 min`."""
    if seconds < 0.995:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def clock_text(seconds: float) -> str:
    """`1:52`, `3:05:00`: the same length for neighbouring values, for columns and lines that change."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def count_text(number: int, unit: str) -> str:
    """`1 stage`, `1,200 steps`."""
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def recovered_text(event: Recovered) -> str:
    """What had failed, and where the run goes on."""
    lost = f", {count_text(event.lost_steps, 'step')} taken again" if event.lost_steps else ""
    return f"recovered in {duration_text(event.seconds)} at step {event.step:,}{lost}: {event.reason}"


def lowered_text(event: RateLowered) -> str:
    """Why a stage's rates are lower than chosen."""
    return (
        f"training diverged at step {event.step:,} (loss {event.loss:.3g}): stage {event.stage} goes on from step "
        f"{event.first_step:,} with {event.factor:g} of its rates"
    )


def task_name(config: Json) -> str:
    """The task's class in snake case, as in result.json."""
    return class_name(part_of(config, "task"), "task")


def class_name(tree: Json, otherwise: str) -> str:
    """The class of a `_target_` tree in snake case; `otherwise` where it names none."""
    return snake_case(str(tree.get("_target_", otherwise)).rsplit(".", 1)[-1])


def policy_name(config: Json) -> str:
    """The name of the learning-rate policy."""
    return str(part_of(config, "lr").get("name", "lr"))


def part_of(config: Json, name: str) -> Json:
    """A group of a recorded configuration; nothing where the record holds something else."""
    part = config.get(name)
    return part if isinstance(part, dict) else {}


def snake_case(name: str) -> str:
    """`LanguageModel` becomes `language_model`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
