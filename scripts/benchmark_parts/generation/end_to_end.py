"""Whole decoding steps of SmolLM2 from a stored prompt: dense in three ways, and by Tactic. Time is of one thread."""

from __future__ import annotations

from collections.abc import Iterator
from time import thread_time

from benchmark_parts.generation.kernels import DENSE
from benchmark_parts.generation.prompts import TRAINED, extended, stored
from benchmark_parts.generation.rows import Row, row

from trainers.generation.evaluation.decoder import Decoder
from trainers.generation.evaluation.methods import method_named
from trainers.generation.sparse_attention.full import Full
from trainers.models.gguf import LoadedModel

TEXT, TARGET = "manual", 0.9


def end_to_end_rows(model: LoadedModel, context: int, steps: int) -> Iterator[Row]:
    """Every way's steps, interleaved, and how much of the prompt's time went into clusters."""
    factor, base = extended(model, context), model.model.rope_base
    model.model.rope_base = base * factor
    note = f"extended RoPE, its base × {factor:.2f}" if context > TRAINED else ""
    prompt = stored(model, TEXT, context, steps)
    tactic = method_named("tactic", TARGET, len(model.model.blocks))
    decoders = {name: Decoder(model.model, prompt.prompt, steps, Full(), kernel=kernel, clock=thread_time)
                for name, kernel in DENSE.items()}  # fmt: skip
    decoders["Tactic"] = Decoder(model.model, prompt.prompt, steps, tactic, clock=thread_time)
    for token in prompt.following[:steps]:
        for decoder in decoders.values():
            decoder.step(token)
    model.model.rope_base = base
    for name, decoder in decoders.items():
        target = TARGET if name == "Tactic" else None
        milliseconds = [1e3 * seconds for seconds in decoder.seconds[1:]]  # compiled code is loaded in the first step
        yield row(
            part="end to end", text=TEXT, context=context, method=name, target=target, steps=steps,
            milliseconds=milliseconds, note=note,
        )  # fmt: skip
    for name, seconds in (("storing", prompt.seconds), ("clustering", decoders["Tactic"].preparing)):
        yield row(part="prompt", text=TEXT, context=context, method=name, milliseconds=[1e3 * seconds], note=note)
