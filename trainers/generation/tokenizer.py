"""What turns text into tokens and back: the seam, and bytes for the models that are trained here."""

from collections.abc import Sequence
from typing import Protocol


class Tokenizer(Protocol):
    """vocabulary: tokens are 0 … vocabulary - 1. ends: those with which a model says that it is done."""

    @property
    def vocabulary(self) -> int: ...

    @property
    def ends(self) -> frozenset[int]: ...

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens; what is not UTF-8 becomes U+FFFD."""

    def token_bytes(self, token: int) -> bytes:
        """What one token adds to a text, which need not be whole characters."""


class ByteTokenizer:
    """Every byte of UTF-8 is a token; there is none to end with."""

    vocabulary = 256
    ends: frozenset[int] = frozenset()

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(tokens).decode(errors="replace")

    def token_bytes(self, token: int) -> bytes:
        return bytes([token])
