"""What a person, or a run folder, may ask of the configuration: overrides as text, and values as a tree."""

import random
from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf

from fuzz_parts.mutations import mutated_bytes, mutated_json
from fuzz_parts.runs import parsed
from orchestrator.cli import quoted, sentence_of_hydra
from orchestrator.config import CONF, recorded_config
from orchestrator.errors import UserError
from trainers.errors import DataError

OVERRIDES = [
    b"task=tabular",
    b"+task.depth=3",
    b"lr=autolrs",
    b"lr.also=[momentum,weight_decay]",
    b"optimizer={_target_:torch.optim.SGD,lr:0.1}",
    b"topology=torus:shape=4x4",
    b"seed=1,2,3",
    b"steps=range(1,9)",
    b"task.data='a b\\'c'",
    b"~cluster.dashboard",
    b"outputs=${oc.env:HOME}/x",
]


@cache
def _composed() -> dict[str, Any]:
    with initialize_config_dir(str(CONF.absolute()), version_base="1.3"):
        values: Any = OmegaConf.to_container(compose("config", ["task=tabular", "tracking=none"]), resolve=True)
        return dict(values)


def overrides(rng: random.Random) -> bytes:
    """One word of a command line."""
    return mutated_bytes(rng, OVERRIDES)


def parse_overrides(data: bytes, _: Path) -> None:
    """As Hydra takes the word apart, with what the command says of its complaints."""
    try:
        OverridesParser.create().parse_overrides([quoted(data.decode(errors="replace"))])
    except HydraException as error:
        raise UserError(sentence_of_hydra(error)) from error


def values(rng: random.Random) -> bytes:
    """A composed configuration in which some places have changed."""
    return mutated_json(rng, _composed()).encode(errors="replace")


def check_values(data: bytes, _: Path) -> None:
    """As a run folder's configuration is read."""
    try:
        found = parsed(data)
    except DataError as error:
        raise UserError(str(error)) from error
    if isinstance(found, dict):
        recorded_config(found)
