"""How to train, as numbers: read by whoever checks a configuration, so no torch in here."""

from dataclasses import dataclass
from typing import Literal

from trainers.generation.evaluation.options import LongContextOptions

Precision = Literal["float32", "bfloat16", "float16"]
Device = Literal["cpu", "cuda"]


@dataclass(frozen=True)
class TrainerOptions:
    """Options of one rank's `Trainer`.

    batch_size: samples a rank takes in one forward pass.
    accumulate: forward passes that make one optimizer step; a step sees batch_size × accumulate × ranks samples.
    clip: largest norm of all gradients together, or None.
    precision: what the forward pass computes in; parameters stay float32, and float16 scales its loss.
    seed: of the initial weights, the data order and dropout.
    validation_samples: samples of the validation split to score, evenly spaced, or None for all of them.
    threads: CPU threads of one rank.
    long_context: what a language model is scored by at long context, beside its task's own evaluation; None: nothing.
    deterministic: only kernels that give the same bits each time; an operation that has none is an error.
    Raises ValueError with a sentence for values that cannot work.
    """

    batch_size: int
    accumulate: int = 1
    clip: float | None = None
    precision: Precision = "float32"
    seed: int = 0
    validation_samples: int | None = None
    threads: int = 1
    device: Device = "cpu"
    deterministic: bool = False
    long_context: LongContextOptions | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "accumulate", "threads", "validation_samples"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1.")
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; it must be 0 or more.")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"clip is {self.clip}; give a positive norm, or null for no clipping.")
        if self.precision not in ("float32", "bfloat16", "float16"):
            raise ValueError(f"precision is {self.precision!r}; choose float32, bfloat16 or float16.")
        if self.device not in ("cpu", "cuda"):
            raise ValueError(f"device is {self.device!r}; choose cpu or cuda.")
