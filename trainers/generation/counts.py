"""What an engine has done so far, in numbers."""

from dataclasses import dataclass


@dataclass
class Counts:
    """passes through the model, and the tokens that took part in them; unseen: tokens produced after an end that was
    noticed a pass late; preempted: how often a sequence lost its room to older ones.
    """

    passes: int = 0
    tokens: int = 0
    unseen: int = 0
    preempted: int = 0
