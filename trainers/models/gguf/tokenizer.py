"""The byte-level BPE tokenizer that a GGUF file brings along, in the words of the package `tokenizers`.

How a text is cut before merging has a name in the file, `tokenizer.ggml.pre`; what the names stand for is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from trainers.errors import DataError
from trainers.models.gguf.header import Header

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

_Kind = TypeVar("_Kind")

_KEY = "tokenizer.ggml."
_CONTROL, _USER_DEFINED = 3, 4  # kinds of tokens that stand in a text as they are
_LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Words write printable bytes as the characters of the same number, and the others as those from 256 on, in order.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = sorted({*range(0x100)} - {*_PRINTABLE})
_BYTES = {chr(byte): byte for byte in _PRINTABLE} | {chr(0x100 + place): byte for place, byte in enumerate(_OTHERS)}


class BytePairTokenizer:
    """A `Tokenizer`. Control tokens such as <|im_end|> are recognised in texts, and are text again when decoded.

    begin: tokens that the model expects in front of a text; `encode` puts them there, and `decode` takes them off.
    Bytes that the vocabulary has no token for are left out: SmolLM2 lacks a few control characters.
    """

    def __init__(self, pieces: Tokenizer, begin: Iterable[int], ends: Iterable[int]) -> None:
        self._pieces = pieces
        self._verbatim = pieces.get_added_tokens_decoder().keys()
        self.begin, self.ends = list(begin), frozenset(ends)

    @property
    def vocabulary(self) -> int:
        return self._pieces.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.begin + encoding.ids for encoding in self._pieces.encode_batch_fast(list(texts))]

    def decode(self, tokens: Sequence[int]) -> str:
        begun = len(self.begin) if list(tokens[: len(self.begin)]) == self.begin else 0
        return self._pieces.decode(list(tokens[begun:]), skip_special_tokens=False)

    def token_bytes(self, token: int) -> bytes:
        word = self._pieces.id_to_token(token)
        if word is None:
            raise ValueError(f"Token {token} is outside the vocabulary of {self.vocabulary}.")
        return word.encode() if token in self._verbatim else bytes(map(_BYTES.__getitem__, word))


def check_tokenizer(header: Header) -> None:
    """Raise DataError unless `tokenizer_of` can make the file's tokenizer."""
    kind, cut = (header.metadata.get(_KEY + key) for key in ("model", "pre"))
    if kind != "gpt2" or cut not in _CUTS:
        raise DataError(
            f"{header.path} has the tokenizer {kind!r} that cuts by {cut!r}; "
            f"'gpt2' that cuts by {' or '.join(map(repr, _CUTS))} can be read."
        )
    words, kinds, merges = (header.metadata.get(_KEY + key) for key in ("tokens", "token_type", "merges"))
    if not (_are(words, str) and _are(kinds, int) and _are(merges, str) and _fit(words, kinds, merges)):
        raise DataError(f"{header.path} has a vocabulary that is not whole; get the file again.")
    for key in ("bos_token_id", "eos_token_id", "eot_token_id"):
        if header.metadata.get(_KEY + key, 0) not in range(len(words)):
            raise DataError(f"{header.path} has a {key} outside its vocabulary; get the file again.")


def tokenizer_of(header: Header) -> BytePairTokenizer:
    """The tokenizer of a file that `check_tokenizer` lets pass."""
    found = {key.removeprefix(_KEY): value for key, value in header.metadata.items() if key.startswith(_KEY)}
    begins = found.get("add_bos_token", found["pre"] == "llama-bpe") and "bos_token_id" in found
    ends = [found[key] for key in ("eos_token_id", "eot_token_id") if key in found]
    return BytePairTokenizer(_pieces(found), [found["bos_token_id"]] if begins else [], ends)


def _pieces(found: dict[str, Any]) -> Tokenizer:
    from tokenizers import AddedToken, Tokenizer, decoders, models

    numbers = {word: number for number, word in enumerate(found["tokens"])}
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in found["merges"])]
    whole = found["pre"] == "llama-bpe"  # there a piece that is a word already is not made of others
    pieces = Tokenizer(models.BPE(numbers, pairs, ignore_merges=whole))
    pieces.pre_tokenizer = _CUTS[found["pre"]]()
    pieces.decoder = decoders.ByteLevel()
    kinds = zip(found["tokens"], found["token_type"], strict=True)
    pieces.add_special_tokens([AddedToken(word) for word, kind in kinds if kind in (_CONTROL, _USER_DEFINED)])
    return pieces


def _gpt_2() -> PreTokenizer:
    from tokenizers.pre_tokenizers import ByteLevel

    return ByteLevel(add_prefix_space=False)


def _smollm() -> PreTokenizer:
    """As GPT-2, and each digit by itself."""
    from tokenizers.pre_tokenizers import Digits, Sequence

    return Sequence([Digits(individual_digits=True), _gpt_2()])


def _llama_3() -> PreTokenizer:
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

    return Sequence([Split(Regex(_LLAMA_3), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)])


_CUTS: dict[str, Callable[[], PreTokenizer]] = {"smollm": _smollm, "gpt-2": _gpt_2, "llama-bpe": _llama_3}


def _are(values: object, kind: type[_Kind]) -> TypeGuard[list[_Kind]]:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _fit(words: list[str], kinds: list[int], merges: list[str]) -> bool:
    known = set(words)
    pairs = [merge.split(" ") for merge in merges]
    made = all(len(pair) == 2 and known.issuperset((*pair, "".join(pair))) for pair in pairs)
    return made and len(known) == len(words) == len(kinds)
