"""How a classifier is scored, the same for images and tables."""

from torch import Tensor
from torch.nn.functional import cross_entropy


def classification_metrics(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Mean cross entropy as "loss", and the share of samples whose likeliest class is right as "accuracy"."""
    return {"loss": cross_entropy(logits, labels), "accuracy": (logits.argmax(-1) == labels).float().mean()}
