"""Going on with a published language model on a text of one's own: by low-rank adapters, or all of its weights."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from trainers.data.text import SPLITS, read_text
from trainers.data.tokens import TokenSplit, split_tokens
from trainers.data.windows import Windows
from trainers.generation.engine import Engine
from trainers.generation.evaluation.text import Text
from trainers.generation.requests import Request
from trainers.generation.tokenizer import Tokenizer
from trainers.models.gguf import LoadedModel
from trainers.models.lora import add_lora
from trainers.models.lora_options import LoraOptions
from trainers.tasks.answers import next_tokens, texts_of
from trainers.tasks.task import Batch, Splits, Task
from trainers.validation import evenly_spaced

SCORED_WINDOWS = 8


class FineTune(Task):
    """Predict each token from those before it.

    model: loads a published model. data: "kjv", or a UTF-8 file or folder of files. context: tokens a window.
    lora: what `LoraOptions` takes; None trains all weights. test_windows: of the test split, evenly spaced, so that
    scoring a large model at the end takes no longer than training it; None for all.
    """

    def __init__(
        self,
        model: Callable[[], LoadedModel],
        data: str = "kjv",
        context: int = 128,
        lora: Mapping[str, Any] | None = None,
        test_windows: int | None = None,
    ) -> None:
        self._load, self._data, self._context, self._test_windows = model, data, context, test_windows
        self._lora = None if lora is None else LoraOptions(**lora)
        self._loaded = model()
        self._before: float | None = None

    @property
    def tokenizer(self) -> Tokenizer:
        return self._loaded.tokenizer

    @property
    def held_out(self) -> TokenSplit:
        """The validation split, once the data are built."""
        return self._held_out

    @property
    def text(self) -> Text:
        """The validation split, once the data are built."""
        return Text(self.tokenizer, self._held_out.tokens, self._loaded.context)

    def build_model(self) -> nn.Module:
        model = self._loaded.model
        if self._lora is not None:
            add_lora(model, self._lora)
        return model

    def build_data(self) -> Splits:
        parts = split_tokens(read_text(self._data), self.tokenizer, self._context, self._data, *SPLITS)
        self._held_out = parts["validation"]
        self._splits = Splits(
            self._windows(parts["train"]),
            self._windows(parts["validation"]),
            self._windows(parts["test"], self._test_windows),
        )
        return self._splits

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        assert isinstance(batch, Tensor)
        logits: Tensor = model(batch[:, :-1])
        return cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())

    def metrics(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """The loss a token in nats, and in bits a byte of the validation split."""
        loss = self.loss(model, batch)
        return {"loss": loss, "bits_per_byte": loss / math.log(2) * self._held_out.tokens_a_byte}

    def evaluate(self, model: nn.Module, step: int) -> tuple[dict[str, float], list[str]]:
        """Perplexity a token and bits a byte on windows of the validation split; the latter also before training."""
        windows = self._splits.validation[evenly_spaced(len(self._splits.validation), SCORED_WINDOWS)]
        assert isinstance(windows, Tensor)
        loss = self._score(model, windows)
        if self._before is None:
            self._before = self._score(self._load().model.to(next(model.parameters()).device), windows)
        scores = {"perplexity": math.exp(loss) if loss < 700 else math.inf}
        return scores | {"bits_per_byte": self._bits(loss), "bits_per_byte_before": self._bits(self._before)}, []

    def predict(self, model: nn.Module, inputs: Any, **options: Any) -> Any:
        """Of texts: their continuations; of tokens (samples, time): probabilities (samples, vocabulary) of the next.

        options: `max_new_tokens` of continuations, and their `temperature`, 0 for the likeliest tokens.
        """
        texts = texts_of(inputs)
        if texts is None:
            return next_tokens(model, inputs, self._loaded.context)
        return self._continuations(texts, **options)

    def _continuations(self, texts: list[str], max_new_tokens: int = 96, temperature: float = 0.0) -> list[str]:
        """By the model that `build_model` gave, adapters included."""
        room = self._loaded.context - max_new_tokens
        prompts = [tuple(self.tokenizer.encode(text)[-room:]) for text in texts]
        engine = Engine(
            self._loaded.model,
            max(map(len, prompts)) + max_new_tokens,
            batch=len(prompts),
            token_bytes=self.tokenizer.token_bytes,
        )
        asked = [
            Request(prompt, max_new_tokens, temperature, seed=number, stop_tokens=self.tokenizer.ends)
            for number, prompt in enumerate(prompts)
        ]
        return [done.text.decode(errors="replace") for done in engine.generate(asked)]

    def _windows(self, split: TokenSplit, wanted: int | None = None) -> Windows:
        chosen = evenly_spaced(len(split.starts), wanted).numpy()
        return Windows(split.tokens, split.starts[chosen], self._context + 1)

    def _score(self, model: nn.Module, windows: Tensor) -> float:
        """Mean loss of the windows, one after another: the logits of each are large."""
        device = next(model.parameters()).device
        return sum(float(self.loss(model, window.to(device))) for window in windows.split(1)) / len(windows)

    def _bits(self, loss: float) -> float:
        """A loss in nats a token as bits a byte of the validation split."""
        return loss / math.log(2) * self._held_out.tokens_a_byte
