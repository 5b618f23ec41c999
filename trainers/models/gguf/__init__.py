"""Published weights in GGUF files: `load_gguf`. What a file holds is read without torch, by `header` and `llama`."""

from typing import TYPE_CHECKING, Any

from trainers.models.gguf.llama import SMOLLM2, read_llama, smollm2_path

if TYPE_CHECKING:
    from trainers.models.gguf.load import LoadedModel, load_gguf

__all__ = ["SMOLLM2", "LoadedModel", "load_gguf", "read_llama", "smollm2_path"]


def __getattr__(name: str) -> Any:
    if name not in ("LoadedModel", "load_gguf"):
        raise AttributeError(f"module 'trainers.models.gguf' has no attribute '{name}'")
    from trainers.models.gguf import load

    return getattr(load, name)
