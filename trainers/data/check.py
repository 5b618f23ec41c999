"""Whether a task's data are there and whole, found out in a second and without torch, before anything starts."""

from collections.abc import Mapping
from typing import Any

from trainers.data.images import read_images
from trainers.data.tables import check_table
from trainers.data.text import check_text


def check_data(task: Mapping[str, Any]) -> None:
    """Check what a task's configuration (`_target_` and its arguments) names as data; unknown tasks pass.

    Raises DataError with the sentence that the task itself would end with later.
    """
    target = str(task.get("_target_", "")).rsplit(".", 1)[-1]
    data = str(task.get("data", ""))
    if target in ("LanguageModel", "MoeLanguageModel"):
        check_text(data, int(task["context"]))
    elif target == "ImageClassification" and data != "digits":
        read_images(data)
    elif target == "Tabular":
        check_table(data)
