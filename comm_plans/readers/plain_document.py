"""JSON and YAML as plain mappings, lists and texts: no tags, no anchors, no numbers read as floats, nothing evaluated.

A scalar stays the text that stands in the file, so that `24.6` can become 123/5 and `no` can be the name of a node.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml

from comm_plans.errors import TopologyError

LARGEST = 1_000_000
DEEPEST = 12


def parse_document(text: str, where: str) -> object:
    """Read JSON or YAML of up to 1 MB. Raises TopologyError that begins with `where` and names the line."""
    if len(text.encode(errors="replace")) > LARGEST:
        raise TopologyError(f"{where} is larger than 1 MB; a topology file is at most that")
    try:
        if text.lstrip().startswith("{"):
            return _parse_json(text)
        return _parse_yaml(text)
    except TopologyError as error:
        raise TopologyError(f"{where}, {error}") from error


def _parse_json(text: str) -> object:
    try:
        return json.loads(text, parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_without_twins)
    except RecursionError as error:
        raise TopologyError("line 1 begins lists within lists, nested too deep for a topology") from error
    except json.JSONDecodeError as flaw:
        return _parse_yaml(text, instead=f"line {flaw.lineno} is not JSON: {flaw.msg}")


def _without_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise TopologyError(f"the key {key[:40]!r} stands twice in one mapping; keep one of them")
        result[key] = value
    return result


def _parse_yaml(text: str, instead: str = "") -> object:
    """Read YAML; where that fails too, `instead` says what was wrong with it as JSON."""
    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        return _document(yaml.parse(text, Loader=loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}" if mark else "its text"
        raise TopologyError(instead or f"{line} is not YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        raise TopologyError(instead or f"its text is not YAML: {reason}") from error


def _document(events: Iterator[Any]) -> object:
    result: object = ""
    documents = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise TopologyError(f"{_line(event)} begins a second document; keep one a file")
            result = _node(next(events), events, 1)
    return result


def _node(event: Any, events: Iterator[Any], depth: int) -> object:
    _check(event, depth)
    if isinstance(event, yaml.ScalarEvent):
        return event.value
    if isinstance(event, yaml.SequenceStartEvent):
        return [_node(item, events, depth + 1) for item in _until(yaml.SequenceEndEvent, events)]
    result: dict[str, object] = {}
    for key in _until(yaml.MappingEndEvent, events):
        if not isinstance(key, yaml.ScalarEvent):
            raise TopologyError(f"{_line(key)} has a key that is no plain text")
        _check(key, depth)
        if key.value in result:
            raise TopologyError(f"{_line(key)} repeats the key {key.value[:40]!r}; keep one of them")
        result[key.value] = _node(next(events), events, depth + 1)
    return result


def _until(end: type, events: Iterator[Any]) -> Iterator[Any]:
    for event in events:
        if isinstance(event, end):
            return
        yield event


def _check(event: Any, depth: int) -> None:
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        raise TopologyError(f"{_line(event)} uses a YAML anchor or alias; write the value out")
    if getattr(event, "tag", None):
        raise TopologyError(f"{_line(event)} uses the YAML tag {event.tag[:60]!r}; write plain values without tags")
    if depth > DEEPEST:
        raise TopologyError(f"{_line(event)} nests lists or mappings too deep for a topology")


def _line(event: Any) -> str:
    return f"line {event.start_mark.line + 1}"
