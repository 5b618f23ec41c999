"""Language modelling on the bytes of a text: the task of the main job."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from trainers.data.text import SPLITS, VOCABULARY, read_text, split_text
from trainers.data.windows import Windows
from trainers.generation.engine import Engine
from trainers.generation.evaluation.text import Text
from trainers.generation.requests import Request
from trainers.generation.tokenizer import ByteTokenizer
from trainers.models.transformer import Transformer
from trainers.tasks.answers import next_tokens, texts_of
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

    @property
    def text(self) -> Text:
        """The validation split, once the data are built."""
        return self._text

    def build_model(self) -> nn.Module:
        return self._model(vocabulary=VOCABULARY)

    def build_data(self) -> Splits:
        parts = split_text(read_text(self._data), self._context, self._data)
        splits = Splits(*(Windows(*parts[name], self._context + 1) for name in SPLITS))
        self._held_out = splits.validation
        self._text = Text(ByteTokenizer(), parts["validation"][0], self._context)
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
        prompt = windows[0, :PROMPT_BYTES].tolist()
        text = bytes(self._continue(model, prompt, SAMPLE_BYTES, TEMPERATURE)).decode(errors="replace")
        return {"perplexity": math.exp(loss) if loss < 700 else math.inf}, [text]

    def predict(self, model: nn.Module, inputs: Any, **options: Any) -> Any:
        """Of texts: each one's continuation; of bytes (samples, time): probabilities (samples, 256) of what follows.

        options: `max_new_tokens` of continuations and their `temperature`, 0 for the likeliest bytes.
        """
        texts = texts_of(inputs)
        if texts is None:
            return next_tokens(model, inputs, self._context)
        return [self._continued(model, text, **options) for text in texts]

    def _continued(
        self, model: nn.Module, text: str, max_new_tokens: int = SAMPLE_BYTES, temperature: float = 0.0
    ) -> str:
        prompt = list(text.encode())
        return bytes(self._continue(model, prompt, max_new_tokens, temperature)[len(prompt) :]).decode(errors="replace")

    def _continue(self, model: nn.Module, tokens: list[int], more: int, temperature: float) -> list[int]:
        """Tokens with `more` added; where the context is full, its second half is the next one's beginning."""
        if not isinstance(model, Transformer):
            return self._continue_any(model, tokens, more, temperature)
        engine, end = Engine(model, self._context, batch=1), len(tokens) + more
        while (left := end - len(tokens)) > 0:
            recent = tuple(tokens[-max(self._context // 2, 1) :])
            tokens = tokens + engine.generate([Request(recent, left, temperature, seed=left)])[0].tokens
        return tokens

    def _continue_any(self, model: nn.Module, tokens: list[int], more: int, temperature: float) -> list[int]:
        """The same for a model of which no more is known than its logits: each token from a fresh pass."""
        device = next(model.parameters()).device
        for _ in range(more):
            logits = model(torch.tensor([tokens[-self._context :]], device=device))[0, -1].float()
            tokens = [*tokens, int(_drawn(logits, temperature))]
        return tokens


def _drawn(logits: Tensor, temperature: float) -> Tensor:
    return torch.multinomial((logits / temperature).softmax(-1), 1) if temperature else logits.argmax()
