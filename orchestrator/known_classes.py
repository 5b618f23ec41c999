"""Keys of the tasks and models that come with the project, and which model fits which task: checked by their names."""

from dataclasses import dataclass
from typing import Any

from orchestrator.errors import UserError

Json = dict[str, Any]


@dataclass
class LanguageModelConfig:
    """Keys of task=language_model."""

    _target_: str
    data: str
    context: int
    model: Any


@dataclass
class MoeLanguageModelConfig(LanguageModelConfig):
    """Keys of task=moe_language_model."""

    balance: float
    cluster: Any


@dataclass
class LoraConfig:
    """Keys of task.lora."""

    rank: int
    alpha: float
    layers: list[str]


@dataclass
class FineTuneConfig(LanguageModelConfig):
    """Keys of task=finetune_smollm2."""

    lora: LoraConfig | None
    test_windows: int | None


@dataclass
class DataTaskConfig:
    """Keys of task=image_classification and task=tabular."""

    _target_: str
    data: str
    model: Any


@dataclass
class TransformerConfig:
    """Keys of model=transformer."""

    _target_: str
    _partial_: bool
    width: int
    layers: int
    heads: int
    key_value_heads: int
    dropout: float


@dataclass
class MoeTransformerConfig(TransformerConfig):
    """Keys of model=moe_transformer."""

    experts: int
    top_k: int
    every: int


@dataclass
class GgufConfig:
    """Keys of model=gguf."""

    _target_: str
    _partial_: bool
    path: str


@dataclass
class ConvNetConfig:
    """Keys of model=convnet."""

    _target_: str
    _partial_: bool
    width: int


@dataclass
class MlpConfig:
    """Keys of model=mlp."""

    _target_: str
    _partial_: bool
    width: int
    layers: int
    dropout: float


KEYS_OF: dict[str, type[Any]] = {
    "trainers.tasks.language_model.LanguageModel": LanguageModelConfig,
    "trainers.tasks.moe_language_model.MoeLanguageModel": MoeLanguageModelConfig,
    "trainers.tasks.finetune.FineTune": FineTuneConfig,
    "trainers.tasks.image_classification.ImageClassification": DataTaskConfig,
    "trainers.tasks.tabular.Tabular": DataTaskConfig,
    "trainers.models.transformer.Transformer": TransformerConfig,
    "trainers.models.moe_transformer.MoeTransformer": MoeTransformerConfig,
    "trainers.models.gguf.load_gguf": GgufConfig,
    "trainers.models.convnet.ConvNet": ConvNetConfig,
    "trainers.models.mlp.Mlp": MlpConfig,
}


_MODEL_OF = {
    "trainers.tasks.language_model.LanguageModel": "transformer",
    "trainers.tasks.moe_language_model.MoeLanguageModel": "moe_transformer",
    "trainers.tasks.finetune.FineTune": "gguf",
    "trainers.tasks.image_classification.ImageClassification": "convnet",
    "trainers.tasks.tabular.Tabular": "mlp",
}


def check_model_fits(task: Json) -> None:
    """Each task that comes with the project calls its model with sizes that only one of the models here takes."""
    if task["_target_"] not in _MODEL_OF:
        return
    tree = task.get("model")
    model = tree.get("_target_") if isinstance(tree, dict) else None
    if not isinstance(model, str):
        raise UserError("task.model._target_ is missing: name the model's class, or choose one with model=")
    if model in KEYS_OF and model.split(".")[-2] != (fitting := _MODEL_OF[task["_target_"]]):
        raise UserError(
            f"task.model._target_ is {model}, which does not fit {task['_target_'].split('.')[-1]}: "
            f"use model={fitting}, or model=own with a class of yours"
        )
