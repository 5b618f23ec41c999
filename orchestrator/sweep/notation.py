"""The words of `orchestrate sweep`: which keys are searched, where, and which values every trial has.

lr.rate=1e-4..1e-1                a range: over decades where its ends are a factor of 10 or more apart, else evenly
optimizer.weight_decay=log(1e-3,1)    a range over decades; even(0,1) an even one
lr.rate=1e-4..1e-1/4              four values of the range, its ends among them
batch_size=[32,64,128]            choices, of names and groups, too: lr=[autolrs,cosine]; or 32,64,128
steps=500                         the same for every trial
"""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from orchestrator.errors import UserError

SEARCHES = ("bayes", "random", "grid", "asha", "pb2")
USUAL_TRIALS = 20
DECADE = 10.0

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)"
_DOTS = re.compile(rf"({_NUMBER})?\.\.({_NUMBER})?(?:/(\d+))?")
_CALL = re.compile(r"(log|even)\(([^,()]*),([^,()]*)\)(?:/(\d+))?")


@dataclass(frozen=True)
class Range:
    """From low to high; `count` values of it, or any where None. logarithmic: whether decades are equally likely."""

    low: float
    high: float
    logarithmic: bool
    count: int | None = None


@dataclass(frozen=True)
class Words:
    """What a person asked for. searched: key → range or choices, as written; fixed: Hydra's overrides, as written."""

    search: str = "bayes"
    trials: int | None = None
    searched: dict[str, Range | tuple[str, ...]] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()


def parse(words: Sequence[str], lists: Collection[str] = ()) -> Words:
    """Read a command line. Raises UserError for what is no KEY=VALUE, for an empty or reversed range, and for NaN.

    lists: keys whose value is itself a list, so that one in brackets is a plain value.
    """
    search, trials = "bayes", None
    searched: dict[str, Range | tuple[str, ...]] = {}
    fixed = []
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or word.startswith("-"):
            raise UserError(f"'{word}' is no KEY=VALUE; write ranges as lr.rate=1e-4..1e-1, choices as seed=[1,2]")
        if key == "search":
            search = _search(text)
        elif key == "trials":
            trials = _trials(text)
        elif not (key in lists and _is_list(text)) and (where := searched_part(key, text)) is not None:
            searched[key] = where
        else:
            fixed.append(word)
    return Words(search, trials, searched, tuple(fixed))


def searched_part(key: str, text: str) -> Range | tuple[str, ...] | None:
    """The range or the choices that a value stands for; None for a plain value."""
    if (dots := _DOTS.fullmatch(text)) and any(dots.groups()):
        low, high, count = dots.groups()
        return _range(key, text, low, high, None, count)
    if call := _CALL.fullmatch(text):
        scale, low, high, count = call.groups()
        return _range(key, text, low, high, scale == "log", count)
    if _is_list(text):
        return _choices(key, _split(text[1:-1]))
    parts = _split(text)
    return _choices(key, parts) if len(parts) > 1 else None


def _search(text: str) -> str:
    if text not in SEARCHES:
        raise UserError(f"search is {text}, and must be one of {', '.join(SEARCHES)}")
    return text


def _trials(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise UserError(f"trials is {text}, and must be a number from 1 on")
    return int(text)


def _range(key: str, text: str, low: str | None, high: str | None, log: bool | None, count: str | None) -> Range:
    first, last = _bound(key, text, low), _bound(key, text, high)
    if not first < last:
        raise UserError(f"{key}={text} is {'empty' if first == last else 'reversed'}: put the lower end first")
    if log and first <= 0:
        raise UserError(f"{key}={text} has decades down to 0 or below: start above 0, or write even({low},{high})")
    if count is not None and int(count) < 2:
        raise UserError(f"{key}={text} asks for fewer values than it has ends: ask for 2 or more")
    logarithmic = (first > 0 and last / first >= DECADE) if log is None else log
    return Range(first, last, logarithmic, int(count) if count else None)


def _bound(key: str, text: str, bound: str | None) -> float:
    try:
        value = float(bound or "nan")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{key}={text} is no range of numbers: write both ends, as in {key}=1e-4..1e-1")
    return value


def _choices(key: str, parts: list[str]) -> tuple[str, ...]:
    if not all(parts) or len(set(parts)) < len(parts):
        raise UserError(f"{key} has an empty choice or one twice: write each once, as in {key}=[a,b]")
    return tuple(parts)


def _is_list(text: str) -> bool:
    """Whether it is one pair of brackets with all else inside."""
    return text.startswith("[") and text.endswith("]") and len(_split(text)) == 1


def _split(text: str) -> list[str]:
    """At commas that are in no brackets, braces or quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote or letter in "'\"":
            quote = "" if letter == quote else quote or letter
        depth += (letter in "[{(") - (letter in "]})") if not quote else 0
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
