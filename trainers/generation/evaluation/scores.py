"""What a language model is worth at long context: perplexity, needles found, attention mass, samples; dense beside."""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean, median

import numpy as np
import torch
from torch import Tensor

from trainers.generation.engine import Engine
from trainers.generation.evaluation.attained import Attained
from trainers.generation.evaluation.decoder import Decoder, predictions
from trainers.generation.evaluation.methods import dense_layers, method_named
from trainers.generation.evaluation.needles import Needle, hidden_in, ranks
from trainers.generation.evaluation.options import LongContextOptions
from trainers.generation.evaluation.prefilled import prefill
from trainers.generation.evaluation.text import Text
from trainers.generation.requests import Request
from trainers.generation.sparse_attention.full import Full
from trainers.models.transformer import Transformer
from trainers.validation import evenly_spaced

TEMPERATURE = 0.7
SHOWN = 60  # characters of a prompt's end before what a sample adds


def long_context_scores(
    model: Transformer, text: Text, options: LongContextOptions, seed: int
) -> tuple[dict[str, float], list[str]]:
    """Metrics under "long_context/…", and samples for people to read.

    perplexity: of the last `new_tokens` tokens of each window, by the method; perplexity_full: by full attention.
    needle_retrieved: the share of needles whose number greedy decoding gives exactly; needle_rank: the median place of
    its digits by log-probability. mass_mean, mass_p5: the share of attention mass that heads attain, over heads and
    steps; kept_share: of the stored tokens, those that are read. tokens_per_second: of one sequence that is decoded.
    """
    options.check()
    windows = [text.window(begin, options.context) for begin in _begins(text, options)]
    both = _Pair(model, options)
    for window in windows:
        both.decode(window, options.new_tokens)
    metrics = both.metrics() | _needle_metrics(model, text, options, seed)
    metrics |= {"context": float(options.context), "trained_context": float(text.context)}
    samples = _samples(model, text, windows, options, seed)
    return {f"long_context/{name}": value for name, value in metrics.items()}, samples


class _Pair:
    """The method and full attention over the same texts, each stored once."""

    def __init__(self, model: Transformer, options: LongContextOptions) -> None:
        layers = len(model.blocks)
        self._model, self._method = model, method_named(options.method, options.target_mass, layers)
        self._attained = Attained(dense_layers(layers))
        self._losses: dict[str, list[float]] = {"": [], "_full": []}
        self._seconds: dict[str, list[float]] = {"": [], "_full": []}

    def decode(self, tokens: Sequence[int], count: int) -> dict[str, Tensor]:
        """Log-probabilities of the last `count` tokens, by the method ("") and in full ("_full")."""
        stored, following = prefill(self._model, tokens[: -count - 1]), tokens[-count - 1 :]
        decoders = {
            "": Decoder(self._model, stored, count, self._method, self._attained),
            "_full": Decoder(self._model, stored, count, Full()),
        }
        found = {name: predictions(decoder, following) for name, decoder in decoders.items()}
        for name, rows in found.items():
            self._losses[name] += (-rows.cpu()[np.arange(count), following[1:]]).tolist()
            self._seconds[name] += decoders[name].seconds
        return found

    def metrics(self) -> dict[str, float]:
        attained = self._attained
        masses = {"mass_mean": attained.mass_mean, "mass_p5": attained.mass_p5}
        perplexities = {f"perplexity{name}": _perplexity(fmean(each)) for name, each in self._losses.items()}
        speeds = {f"tokens_per_second{name}": 1 / median(each) for name, each in self._seconds.items()}
        return perplexities | masses | {"kept_share": float(np.mean(attained.shares))} | speeds


def _needle_metrics(model: Transformer, text: Text, options: LongContextOptions, seed: int) -> dict[str, float]:
    if not options.needles:
        return {}
    both = _Pair(model, options)
    found: dict[str, list[Tensor]] = {"": [], "_full": []}
    for needle in _needles(text, options, seed):
        for name, rows in both.decode(needle.prompt + needle.answer, len(needle.answer)).items():
            found[name].append(ranks(rows, needle.answer))
    metrics = {f"needle_retrieved{name}": fmean(int(each.max()) == 1 for each in found[name]) for name in found}
    return metrics | {f"needle_rank{name}": float(torch.cat(found[name]).median()) for name in found}


def _needles(text: Text, options: LongContextOptions, seed: int) -> Iterator[Needle]:
    """At depths evenly over the text, in half and all of the context."""
    begins = _begins(text, options)
    for number in range(options.needles):
        begin = begins[number % len(begins)]
        for context in (options.context // 2, options.context):
            hay = text.window(begin, context)
            yield hidden_in(hay, text.tokenizer, (number + 0.5) / options.needles, seed * options.needles + number)


def _samples(
    model: Transformer, text: Text, windows: Sequence[Sequence[int]], options: LongContextOptions, seed: int
) -> list[str]:
    """How the model goes on, each with the end of its prompt and a line about the context."""
    prompts = [tuple(window[: -options.new_tokens]) for window in windows]
    stop = text.tokenizer.ends
    requests = [
        Request(prompt, options.new_tokens, TEMPERATURE, seed=seed + number, stop_tokens=stop)
        for number, prompt in enumerate(prompts)
    ]
    method = method_named(options.method, options.target_mass, len(model.blocks))
    completions = Engine(model, options.context, batch=options.batch, method=method).generate(requests)
    decode = text.tokenizer.decode
    return [
        f"[{_about(text, options)}] …{decode(prompt)[-SHOWN:]} ▸ {decode(completion.tokens)}"
        for prompt, completion in zip(prompts, completions, strict=True)
    ]


def _about(text: Text, options: LongContextOptions) -> str:
    beyond = f", extrapolated from {text.context}" if options.context > text.context else ""
    return f"{options.method} after {options.context - options.new_tokens} tokens{beyond}"


def _begins(text: Text, options: LongContextOptions) -> list[int]:
    """Where windows of the context begin in the validation split, evenly spaced."""
    options.check_held_out(len(text.tokens))
    places: list[int] = evenly_spaced(len(text.tokens) - options.context + 1, options.prompts).tolist()
    return places


def _perplexity(loss: float) -> float:
    return math.exp(loss) if loss < 700 else math.inf
