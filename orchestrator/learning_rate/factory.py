"""From plain configuration values to a policy: {"name": "cosine", "rate": 0.01, …} and the step budget."""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.errors import UserError
from orchestrator.learning_rate.autolrs import AutoLRS
from orchestrator.learning_rate.plateau import Plateau, PlateauOptions
from orchestrator.learning_rate.policy import Policy
from orchestrator.learning_rate.published import PublishedAutoLRS
from orchestrator.learning_rate.published_plan import PublishedOptions
from orchestrator.learning_rate.rungs import AutoLRSOptions
from orchestrator.learning_rate.scheduled import (
    ConstantOptions,
    CosineOptions,
    LinearOptions,
    OneCycleOptions,
    Scheduled,
    StepOptions,
)


@dataclasses.dataclass(frozen=True)
class Kind:
    """A policy by name: the dataclass of its parameters, and how it is built from (steps, seed, parameters)."""

    options: type[Any]
    build: Callable[[int, int, Any], Policy]


def _scheduled(steps: int, seed: int, options: Any) -> Policy:
    return Scheduled(steps, options)


POLICIES: dict[str, Kind] = {
    "autolrs": Kind(AutoLRSOptions, AutoLRS),
    "autolrs_hold": Kind(AutoLRSOptions, AutoLRS),
    "autolrs_paper": Kind(PublishedOptions, PublishedAutoLRS),
    "constant": Kind(ConstantOptions, _scheduled),
    "cosine": Kind(CosineOptions, _scheduled),
    "linear": Kind(LinearOptions, _scheduled),
    "one_cycle": Kind(OneCycleOptions, _scheduled),
    "plateau": Kind(PlateauOptions, lambda steps, seed, options: Plateau(steps, options)),
    "step": Kind(StepOptions, _scheduled),
    # What the others are compared with: schedules under the name of the optimizer that conf/lr/NAME.yaml joins them to.
    "d_adaptation": Kind(CosineOptions, _scheduled),
    "hypergradient": Kind(ConstantOptions, _scheduled),
    "prodigy": Kind(CosineOptions, _scheduled),
    "schedule_free_adamw": Kind(LinearOptions, _scheduled),
    "schedule_free_sgd": Kind(LinearOptions, _scheduled),
}


_WORDS: dict[type, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    float: (int | float, "a number"),
    str: (str, "a word"),
}


def make_policy(options: Mapping[str, Any], steps: int, seed: int = 0) -> Policy:
    """The policy named by options["name"], with the rest as its parameters, for a run of `steps` optimizer steps.

    UserError, in words of the configuration (lr.KEY, steps), for whatever makes no sense.
    """
    values = dict(options)
    name = values.pop("name", None)
    if not isinstance(name, str) or name not in POLICIES:
        raise UserError(f"lr.name is {name!r}, which is no policy: choose one of {', '.join(POLICIES)}.")
    kind = POLICIES[name]
    return kind.build(_as_type(steps, int, "steps"), seed, _options_of(kind.options, name, values))


def _options_of(options: type[Any], name: str, values: Mapping[str, Any]) -> Any:
    kinds = typing.get_type_hints(options)
    for key in values:
        if key not in kinds:
            raise UserError(f"lr.{key} is no parameter of {name}: it takes {', '.join(sorted(kinds))}.")
    return options(**{key: _as_type(value, kinds[key], f"lr.{key}") for key, value in values.items()})


def _as_type(value: Any, kind: Any, key: str) -> Any:
    """The value as a parameter wants it; `kind` is bool, int, float or str, one of them with None, or words."""
    if typing.get_origin(kind) is tuple:
        words = isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)
        if not words:
            raise UserError(f"{key} is {value!r}: set it to a list of words, [] for none.")
        return tuple(value)
    optional = isinstance(kind, types.UnionType)
    if optional and value is None:
        return None
    plain = typing.get_args(kind)[0] if optional else kind
    accepted, wanted = _WORDS[plain]
    if isinstance(value, bool) != (plain is bool) or not isinstance(value, accepted):
        raise UserError(f"{key} is {value!r}: set it to {wanted}{' or null' if optional else ''}.")
    return plain(value)
