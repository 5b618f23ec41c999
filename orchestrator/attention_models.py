"""Models that ways to attend are compared on: published ones from GGUF files, and those of finished runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orchestrator.config import Config, build, recorded_config
from orchestrator.errors import UserError
from orchestrator.events import RunStarted
from orchestrator.journal_file import JOURNAL, read_journal
from orchestrator.run_folder import WEIGHTS
from trainers.data.text import read_text
from trainers.errors import DataError
from trainers.generation.tokenizer import Tokenizer
from trainers.models.gguf import read_llama
from trainers.models.gguf.tokenizer import tokenizer_of

if TYPE_CHECKING:
    from trainers.models.transformer import Transformer
    from trainers.trainer import Trainer

Tokens = NDArray[np.integer]


@dataclass(frozen=True)
class Described:
    """A model by its sizes and texts as tokens. limit: the most tokens it looks back on, if there is one.

    load: reads the weights.
    """

    name: str
    layers: int
    key_value_heads: int
    head_width: int
    limit: int | None
    texts: dict[str, Tokens]
    load: "Callable[[], Transformer]"


def described(model: str, texts: Sequence[str] | None) -> Described:
    """The model called "smollm2", in a GGUF file, or in a run folder. Raises UserError or DataError."""
    if Path(model).is_dir():
        return _of_run(Path(model), texts)
    llama = read_llama(model)
    sizes = llama.name, llama.layers, llama.key_value_heads, llama.head_width, llama.context
    return Described(*sizes, _tokens(texts or ["kjv"], tokenizer_of(llama.header)), partial(_load_gguf, model))


def _load_gguf(path: str) -> "Transformer":
    from trainers.models.gguf import load_gguf

    return load_gguf(path).model


def _of_run(folder: Path, texts: Sequence[str] | None) -> Described:
    from trainers.generation.evaluation.text import OffersText
    from trainers.models.transformer import Transformer

    started = next(iter(read_journal(folder / JOURNAL)), None)
    if not isinstance(started, RunStarted) or not (folder / WEIGHTS).is_file():
        raise UserError(f"{folder} has no {WEIGHTS}; name the folder of a run that has finished")
    trainer, task = _trainer(recorded_config(started.config))
    trainer.load_weights(folder / WEIGHTS)
    model = trainer.model.eval()
    if not isinstance(task, OffersText) or not isinstance(model, Transformer):
        raise UserError(f"{folder} trained no language model of text, so there is nothing to attend to")
    text = task.text
    own: dict[str, Tokens] = {f"validation split of {folder}": text.tokens}
    tokens = _tokens(texts, text.tokenizer) if texts else own
    return Described(
        str(folder), len(model.blocks), model.key_value_heads, model.head_width, None, tokens, lambda: model
    )


def _trainer(config: Config) -> "tuple[Trainer, object]":
    from orchestrator.training import job_spec
    from trainers.trainer import Trainer, TrainerOptions

    task = build(config.task)
    return Trainer(task, build(config.optimizer), TrainerOptions(**job_spec(config, "attention").options)), task


def _tokens(texts: Sequence[str], tokenizer: Tokenizer) -> dict[str, Tokens]:
    """Each text's tokens by its name: "kjv", or a UTF-8 file or folder. Raises UserError."""
    try:
        read = {text: read_text(text, "--texts").tobytes().decode() for text in texts}
    except DataError as error:
        raise UserError(str(error)) from error
    return {text: np.array(tokenizer.encode(content), np.int64) for text, content in read.items()}
