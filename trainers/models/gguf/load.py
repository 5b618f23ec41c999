"""From a GGUF file to a model: its weights as float32, whatever they are stored as."""

import mmap
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import torch
from torch import Tensor

from trainers.models.gguf.llama import Llama, read_llama, stored_bytes
from trainers.models.gguf.tokenizer import BytePairTokenizer, tokenizer_of
from trainers.models.transformer import Transformer


@dataclass(frozen=True)
class LoadedModel:
    """A model in evaluation mode, and what belongs to it. context: tokens that it was trained to look back on."""

    model: Transformer
    tokenizer: BytePairTokenizer
    context: int
    name: str


def load_gguf(path: str | Path) -> LoadedModel:
    """The model in a GGUF file, or the one called "smollm2". Raises DataError with a sentence, by the header alone."""
    llama = read_llama(path)
    return LoadedModel(transformer_of(llama), tokenizer_of(llama.header), llama.context, llama.name)


def transformer_of(llama: Llama) -> Transformer:
    """The model with its weights.

    Rows of queries and keys lie in the file as interleaved pairs (2i, 2i + 1), the order that `rotate` turns.
    """
    with torch.device("meta"):  # no memory, and no random numbers
        model = Transformer(
            llama.vocabulary,
            llama.width,
            llama.layers,
            llama.heads,
            llama.key_value_heads,
            head_width=llama.head_width,
            inner=llama.inner,
            rope_base=llama.rope_base,
            norm_eps=llama.norm_eps,
            tied=llama.tied,
        )
    model.load_state_dict(_weights(llama), assign=True)
    return model.eval()


def _weights(llama: Llama) -> dict[str, Tensor]:
    with llama.header.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return {parameter: _decoded(content, llama, name, shape) for name, parameter, shape in llama.parameters()}


def _decoded(content: mmap.mmap, llama: Llama, name: str, shape: tuple[int, ...]) -> Tensor:
    entry = llama.header.tensors[name]
    stored = content[entry.offset : entry.offset + stored_bytes(llama.header, name, entry)]
    rows = np.frombuffer(stored, np.uint8).reshape(*shape[:-1], -1)
    numbers = gguf.dequantize(rows, gguf.GGMLQuantizationType(entry.type))
    return torch.from_numpy(np.require(numbers.reshape(shape), np.float32, "W"))
