"""A text as tokens, in three splits cut at the same places as for language models on bytes. No torch in here."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainers.data.text import BLOCKS, Bytes, split_text
from trainers.errors import DataError
from trainers.generation.tokenizer import Tokenizer


@dataclass(frozen=True)
class TokenSplit:
    """texts: the blocks of the text in this split. tokens: of all of them. starts: of windows, `context` apart."""

    texts: list[str]
    tokens: NDArray[np.int32]
    starts: NDArray[np.int64]

    @property
    def tokens_a_byte(self) -> float:
        return len(self.tokens) / sum(len(text.encode()) for text in self.texts)


def split_tokens(text: Bytes, tokenizer: Tokenizer, context: int, data: str, *names: str) -> dict[str, TokenSplit]:
    """The splits of these names, with windows of context + 1 tokens; one may reach from a block into the split's next.

    Raises DataError for a text of which a split holds no window.
    """
    if len(text) < 2 * BLOCKS:
        raise DataError(
            f"task.data={data} holds {len(text)} bytes, too few to cut into {BLOCKS} blocks; give more text."
        )
    cut = split_text(text, 1, data)
    return {name: _tokenised(cut[name][0], len(text) // BLOCKS, tokenizer, context, data) for name in names}


def _tokenised(content: Bytes, size: int, tokenizer: Tokenizer, context: int, data: str) -> TokenSplit:
    texts = [block.tobytes().decode(errors="ignore") for block in content.reshape(-1, size)]  # a cut character is lost
    tokens = np.concatenate([np.array(part, np.int32) for part in tokenizer.encode_all(texts)])
    if len(tokens) <= context:
        raise DataError(
            f"task.data={data} has a split of {len(tokens)} tokens, and task.context={context} needs {context + 1}: "
            "give more text or a shorter context."
        )
    return TokenSplit(texts, tokens, np.arange(0, len(tokens) - context, context))
