"""Weights from a file that a trainer wrote, put into a model that was built again."""

from pathlib import Path

from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

from trainers.frozen import check_frozen, frozen
from trainers.sharding import cut


def load_weights(model: nn.Module, path: Path) -> None:
    """Take what `Trainer.save_weights` wrote. RuntimeError or DataError where it is another model's."""
    with safe_open(path, framework="pt") as file:
        check_frozen(model, (file.metadata() or {}).get("frozen"))
    model.load_state_dict(cut(model, load_file(path)) | frozen(model))
