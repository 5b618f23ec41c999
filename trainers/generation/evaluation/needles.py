"""A needle in a haystack: a sentence with a number, hidden somewhere in a long text, is asked for at the text's end."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trainers.generation.tokenizer import Tokenizer

PLACES = ("Lisbon", "Oslo", "Cairo", "Quito", "Hanoi", "Perth", "Tunis", "Riga")
DIGITS = 5


@dataclass(frozen=True)
class Needle:
    """prompt: a text with the sentence in it, up to where the number should follow. answer: the number's tokens."""

    prompt: list[int]
    answer: list[int]


def hidden_in(text: Sequence[int], tokenizer: Tokenizer, depth: float, seed: int) -> Needle:
    """The text with a needle: as many tokens as before, answer included. depth: 0 at its beginning, 1 at its end.

    Place and number follow from the seed.
    """
    random = np.random.default_rng(seed)
    place, number = random.choice(PLACES), "".join(random.choice(list("0123456789"), DIGITS))
    begin = len(tokenizer.encode(""))  # tokens that belong in front of every text
    question = f"\nThe secret number of {place} is"
    sentence, asked, answer = (
        tokenizer.encode(words)[begin:] for words in (f"{question} {number}.\n", question, f" {number}")
    )
    hay = list(text[: len(text) - len(sentence) - len(asked) - len(answer)])
    at = round(depth * len(hay))
    return Needle([*hay[:at], *sentence, *hay[at:], *asked], answer)


def ranks(predictions: Tensor, answer: Sequence[int]) -> Tensor:
    """The place of each token of the answer among all by log-probability (len(answer), vocabulary); 1 is the likeliest.

    If all are 1, greedy decoding gives the answer.
    """
    asked = predictions.gather(1, torch.tensor(answer, device=predictions.device)[:, None])
    return (predictions > asked).sum(1) + 1
