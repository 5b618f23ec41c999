"""The configuration tree composed outside `orchestrate run`: for trials of a sweep, many of them in one process."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.cli import quoted, sentence_of_hydra
from orchestrator.config import CONF, Config, config_from, sentence_of
from orchestrator.errors import UserError

Json = dict[str, Any]


def compose(overrides: Sequence[str]) -> tuple[Json, Path]:
    """What `orchestrate run` would compose here, as plain values, and where a sweep's folder would lie.

    Raises UserError, in one sentence, for what Hydra or OmegaConf refuses.
    """
    import hydra
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
            tree = hydra.compose("config", [quoted(each) for each in overrides], return_hydra_config=True)
        folder = Path(tree.hydra.sweep.dir).absolute()
        tree = OmegaConf.masked_copy(tree, [str(key) for key in tree if key != "hydra"])
        tree.outputs = str(Path(tree.outputs).absolute())
        values: Any = OmegaConf.to_container(tree, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise UserError(sentence_of(error)) from error
    except Exception as error:  # Hydra's own have no common ancestor
        raise UserError(sentence_of_hydra(error)) from error
    return {**values, "search_paths": [str(Path.cwd())]}, folder


def configured(overrides: Sequence[str]) -> Config:
    """The typed and checked configuration."""
    return config_from(compose(overrides)[0])
