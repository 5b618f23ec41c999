"""Whether long context can be scored for a task, told by its configuration alone, before anything starts."""

from collections.abc import Mapping
from typing import Any

from trainers.data.text import read_text, split_text
from trainers.data.tokens import split_tokens
from trainers.errors import GenerationError
from trainers.generation.cache_plan import CachePlan, available_memory
from trainers.generation.evaluation.options import LongContextOptions
from trainers.models.gguf.llama import read_llama
from trainers.models.gguf.tokenizer import tokenizer_of

_OF_BYTES = ("LanguageModel", "MoeLanguageModel")
_OF_TOKENS = "FineTune"


def check_long_context(options: LongContextOptions, task: Mapping[str, Any]) -> None:
    """Check options against a task's configuration (`_target_` and its arguments); unknown tasks pass.

    Raises GenerationError or DataError with the sentence that the evaluation itself would end with later.
    """
    options.check()
    target = str(task.get("_target_", ""))
    name = target.rsplit(".", 1)[-1]
    if name in (*_OF_BYTES, _OF_TOKENS):
        if (tokens := _held_out_tokens(name, task)) is not None:
            options.check_held_out(tokens)
        if (cache := cache_of(options, task)) is not None:
            cache.check(available_memory())
    elif target.startswith("trainers."):
        raise GenerationError(
            f"task._target_ is {target}, which has no text to score at long context; choose task=language_model or "
            "finetune_smollm2, or evaluation=standard."
        )


def cache_of(options: LongContextOptions, task: Mapping[str, Any]) -> CachePlan | None:
    """What is stored, by the sizes in a task's configuration; None for a model of the person's own."""
    model = task.get("model", {})
    if "path" in model:
        llama = read_llama(model["path"])
        return options.cache(llama.layers, llama.key_value_heads, llama.head_width)
    if "key_value_heads" not in model:
        return None
    return options.cache(model["layers"], model["key_value_heads"], model["width"] // model["heads"])


def _held_out_tokens(name: str, task: Mapping[str, Any]) -> int | None:
    """Tokens of the validation split; None where the tokenizer comes with a model of the person's own."""
    text, data = read_text(str(task["data"])), str(task["data"])
    if name in _OF_BYTES:
        return len(split_text(text, int(task["context"]), data)["validation"][0])
    if "path" not in task["model"]:
        return None
    tokenizer = tokenizer_of(read_llama(task["model"]["path"]).header)
    return len(split_tokens(text, tokenizer, task["context"], data, "validation")["validation"].tokens)
