"""A run's parameters in MLflow: what runs are compared by under short names, and the whole configuration below `yaml`.

MLflow's comparison draws the first three parameters that differ, in the order of their names. So the short ones come
first, and the keys of the configuration, of which many differ together, behind them.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from orchestrator.events import Json, RunStarted
from orchestrator.recorders.mlflow.spool import Operation
from orchestrator.recorders.secrets import mask_all
from orchestrator.words import class_name, part_of, policy_name, task_name

BEHIND = "yaml."
"""What the keys of the configuration begin with, as in `yaml.lr.rate`."""

_LONGEST_PARAMETER = 6000  # MLflow cuts silently; we cut and say so
_LONGEST_KEY = 200  # MLflow takes 250, a prefix included
_LEFT_OUT = ("size", "dry_run", "evaluate", "terminal", "parent")  # what size sets stands where it belongs


def configuration(event: RunStarted) -> list[Operation]:
    """Parameters, the configuration as a file, and the name that the run has in Ray, too."""
    config: Json = mask_all(event.config)
    chosen = {name: part for name, part in config.items() if name not in _LEFT_OUT}
    return [
        {"op": "name", "name": event.run_id},
        {"op": "params", "values": _short(config) | flat(chosen, BEHIND)},
        {"op": "text", "file": "configuration.json", "text": json.dumps(config, indent=2)},
        {"op": "tags", "values": {"run": event.run_id}},
    ]


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """A nested configuration as MLflow parameters: `{"lr": {"low": 1}}` becomes `{"lr.low": "1"}`."""
    parameters: dict[str, str] = {}
    for key, value in values.items():
        name = f"{prefix}{legal(str(key))}"[:_LONGEST_KEY]
        if isinstance(value, Mapping) and value:
            parameters.update(flat(value, f"{name}."))
        else:
            parameters[name] = _shortened(value if isinstance(value, str) else json.dumps(value))
    return parameters


def legal(name: str) -> str:
    """The name with what MLflow refuses replaced by an underscore."""
    return re.sub(r"[^\w\-. :]", "_", name).replace("..", "__").strip(".")[:_LONGEST_KEY] or "_"


def _short(config: Json) -> dict[str, str]:
    """What was trained, how, and with what; `plan` follows once it is known."""
    words = {
        "task": task_name(config),
        "lr_policy": policy_name(config),
        "model": class_name(part_of(part_of(config, "task"), "model"), "own"),
        "optimizer": str(part_of(config, "optimizer").get("_target_", "own")).rsplit(".", 1)[-1],
        "workers": part_of(config, "cluster").get("workers", 1),
        **{name: config.get(name) for name in ("seed", "steps", "batch_size")},
    }
    return {name: str(value) for name, value in words.items() if value is not None}


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_PARAMETER:
        return text
    note = f" … ({len(text)} characters)"
    return text[: _LONGEST_PARAMETER - len(note)] + note
