"""Which model keys and values were computed by: those of other weights are worth nothing, whatever the tokens."""

import hashlib

import torch

from trainers.models.transformer import Transformer


class Fingerprint:
    """SHA-256 of a model's weights and constants, computed again after weights have changed in place.

    Changes are seen by torch's version counters, which optimizers and `load_state_dict` raise and `parameter.data`
    passes by.
    """

    def __init__(self, model: Transformer) -> None:
        self._model = model
        self._versions: list[tuple[int, int]] = []
        self._digest = ""

    def __call__(self) -> str:
        versions = [(parameter.data_ptr(), parameter._version) for parameter in self._model.parameters()]
        if versions != self._versions:
            self._versions, self._digest = versions, _digest(self._model)
        return self._digest


def _digest(model: Transformer) -> str:
    digest = hashlib.sha256(f"{model.heads} {model.rope_base} {model.norm.eps}".encode())
    for name, parameter in model.named_parameters():
        digest.update(f"{name} {parameter.dtype} {tuple(parameter.shape)}".encode())
        digest.update(parameter.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
