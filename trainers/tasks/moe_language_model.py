"""Language modelling by a mixture of experts that are spread over the ranks."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from comm_plans.runtime.all_to_all.exchange import exchange
from trainers.data.text import VOCABULARY
from trainers.experts.load import Load, summary
from trainers.experts.mixture import MixtureOfExperts
from trainers.models.moe_transformer import MoeTransformer
from trainers.tasks.language_model import LanguageModel
from trainers.tasks.task import Batch, ModelFactory


class MoeLanguageModel(LanguageModel):
    """Predict each byte from those before it; in training, `balance` times the experts' balance loss comes on top.

    model: called with vocabulary=256 and exchange=…; maps tokens (batch, time) to logits (batch, time, vocabulary) and
    has `MixtureOfExperts` layers. cluster: the keys of a cluster file, for tokens that travel by plan; None: by the
    backend's own all-to-all.
    """

    def __init__(
        self,
        model: ModelFactory = MoeTransformer,
        data: str = "kjv",
        context: int = 128,
        balance: float = 0.01,
        cluster: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(model, data, context)
        self._balance, self._cluster = balance, cluster

    def build_model(self) -> nn.Module:
        return self._model(vocabulary=VOCABULARY, exchange=exchange(self._cluster))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        loss = super().loss(model, batch)
        if not model.training:
            return loss
        return loss + self._balance * torch.stack([layer.balance for layer in _mixtures(model)]).mean()

    def measurements(self, model: nn.Module) -> dict[str, float]:
        loads = [layer.load for layer in _mixtures(model)]
        for layer in _mixtures(model):
            layer.load = Load()
        return summary(loads)


def _mixtures(model: nn.Module) -> list[MixtureOfExperts]:
    return [module for module in model.modules() if isinstance(module, MixtureOfExperts)]
