"""Overrides from a file, as in `orchestrate run @best.yaml`: a YAML list of KEY=VALUE."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from orchestrator.errors import UserError

_LARGEST = 100_000  # bytes


def expanded(words: Sequence[str]) -> list[str]:
    """The words, with those of its file in place of each @FILE.

    A file never decides which code runs: a `_target_` that the installed configuration tree does not know must be among
    the other words as well. Raises UserError.
    """
    plain = {word for word in words if not word.startswith("@")}
    return [inner for word in words for inner in (_words_of(Path(word[1:]), plain) if word[:1] == "@" else [word])]


def _words_of(path: Path, granted: set[str]) -> Iterator[str]:
    for word in _read(path):
        key, equals, value = (part.strip() for part in word.partition("="))
        if not equals or key.lstrip("+~").startswith(("-", "hydra")) or "{" in word:  # which could hide a _target_
            raise UserError(f"{path} has '{word}', which is no plain KEY=VALUE of a run: take that line out")
        if key.endswith("_target_") and word not in granted and not _is_known(value):
            raise UserError(f"{path} names code of its own, {word}; if you trust it, add {word} to the command")
        yield word


def _read(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            words: Any = yaml.safe_load(file.read(_LARGEST))
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name a file that a sweep has written") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read as YAML: name a file that a sweep has written") from error
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UserError(f"{path} is no list of KEY=VALUE: name a file that a sweep has written, such as best.yaml")
    return words


def _is_known(target: str) -> bool:
    from orchestrator.config import known_targets

    return target in known_targets()
