"""Whether a task's data are there and whole, found out in a second and without torch, before anything starts."""

from collections.abc import Mapping
from typing import Any

from trainers.data.images import read_images
from trainers.data.tables import check_table
from trainers.data.text import check_text, read_text
from trainers.data.tokens import split_tokens
from trainers.errors import DataError
from trainers.models.gguf.llama import read_llama
from trainers.models.gguf.tokenizer import tokenizer_of
from trainers.models.lora_options import LoraOptions


def check_data(task: Mapping[str, Any]) -> None:
    """Check what a task's configuration (`_target_` and its arguments) names as data; unknown tasks pass.

    Raises DataError with the sentence that the task itself would end with later.
    """
    target = str(task.get("_target_", "")).rsplit(".", 1)[-1]
    data = str(task.get("data", ""))
    if target in ("LanguageModel", "MoeLanguageModel"):
        check_text(data, int(task["context"]))
    elif target == "FineTune":
        _check_fine_tuning(task, data)
    elif target == "ImageClassification" and data != "digits":
        read_images(data)
    elif target == "Tabular":
        check_table(data)


def _check_fine_tuning(task: Mapping[str, Any], data: str) -> None:
    if task["lora"] is not None:
        LoraOptions(**task["lora"])
    if (windows := task["test_windows"]) is not None and windows < 1:
        raise DataError(f"task.test_windows is {windows}; it must be at least 1, or null for all.")
    text = read_text(data)
    if (path := task["model"].get("path")) is None:
        return  # a model of the person's own
    llama = read_llama(path)
    if not 1 <= task["context"] <= llama.context:
        raise DataError(f"task.context is {task['context']}; {llama.name} takes 1 to {llama.context} tokens.")
    split_tokens(text, tokenizer_of(llama.header), task["context"], data, "validation", "test")
