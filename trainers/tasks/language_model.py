"""Language modelling on the bytes of a text: the task of the main job."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from trainers.data.text import SPLITS, VOCABULARY, read_text, split_text
from trainers.data.windows import Windows
from trainers.models.transformer import Transformer
from trainers.tasks.task import Batch, ModelFactory, Splits, Task
from trainers.validation import evenly_spaced

SCORED_WINDOWS = 64
PROMPT_BYTES = 32
SAMPLE_BYTES = 96
TEMPERATURE = 0.7


class LanguageModel(Task):
    """Predict each byte from those before it.

    model: called with vocabulary=256; maps tokens (batch, time) to logits (batch, time, vocabulary).
    data: "kjv", or a UTF-8 file or folder of files. context: bytes a window, the most the model looks back.
    """

    def __init__(self, model: ModelFactory = Transformer, data: str = "kjv", context: int = 128) -> None:
        self._model, self._data, self._context = model, data, context

    def build_model(self) -> nn.Module:
        return self._model(vocabulary=VOCABULARY)

    def build_data(self) -> Splits:
        parts = split_text(read_text(self._data), self._context, self._data)
        splits = Splits(*(Windows(*parts[name], self._context + 1) for name in SPLITS))
        self._held_out = splits.validation
        return splits

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        assert isinstance(batch, Tensor)
        logits: Tensor = model(batch[:, :-1])
        return cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())

    def metrics(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        loss = self.loss(model, batch)
        return {"loss": loss, "bits_per_byte": loss / math.log(2)}

    def evaluate(self, model: nn.Module, step: int) -> tuple[dict[str, float], list[str]]:
        """Perplexity a byte of windows of the validation split, and how the model continues the first of them."""
        device = next(model.parameters()).device
        windows = self._held_out[evenly_spaced(len(self._held_out), SCORED_WINDOWS)]
        assert isinstance(windows, Tensor)
        losses = [float(self.loss(model, part.to(device))) * len(part) for part in windows.split(8)]
        loss = sum(losses) / len(windows)
        prompt = windows[0, :PROMPT_BYTES].to(device)
        text = bytes(self._continue(model, prompt, SAMPLE_BYTES).tolist()).decode(errors="replace")
        return {"perplexity": math.exp(loss) if loss < 700 else math.inf}, [text]

    def _continue(self, model: nn.Module, tokens: Tensor, count: int) -> Tensor:
        """Tokens (time,) with `count` sampled ones added, each from a fresh pass over the context."""
        for _ in range(count):
            logits = model(tokens[None, -self._context :])[0, -1]
            following = torch.multinomial((logits.float() / TEMPERATURE).softmax(-1), 1)
            tokens = torch.cat([tokens, following])
        return tokens
