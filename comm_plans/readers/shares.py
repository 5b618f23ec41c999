"""How GPUs that fast links join share their network cards: each as much as every other, limited by its way to the card.

Fast links carry what one GPU has for the card of another, so that nothing is lost by giving each its fixed part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from comm_plans.readers.machine import Machine, groups
from comm_plans.readers.rates import Rates


def shares(machine: Machine, rates: Rates) -> Iterator[tuple[str, str, Fraction]]:
    """GPU, network card and GB/s each way, for each GPU and each card that it uses."""
    near = machine.nearest_nics()
    pairs = [(gpu, nic) for gpu, nics in near.items() for nic in nics]
    places = machine.tree.meeting_places(machine.gpus, machine.nics)
    for group in groups([*machine.gpus, *machine.nics], pairs):
        gpus = [gpu for gpu in group if gpu in near]
        nics = [nic for nic in group if nic in machine.nics]
        for gpu, parts in zip(gpus, _parts(len(gpus), len(nics)), strict=True):
            limits = [_speed(machine, nic, places[gpu], rates) for nic in nics]
            wanted = [part * limit for part, limit in zip(parts, limits, strict=True)]
            ways = [rates.settled(machine.tree.uplinks[step]) for step in machine.tree.way(gpu, places[gpu])]
            slowed = min([Fraction(1), *(way / sum(wanted) for way in ways)])
            yield from ((gpu, nic, part * slowed) for nic, part in zip(nics, wanted, strict=True) if part)


def _speed(machine: Machine, nic: str, place: str, rates: Rates) -> Fraction:
    """GB/s from where a GPU meets a card, through it into the network."""
    ways = [machine.tree.uplinks[step] for step in machine.tree.way(nic, place)]
    return min(rates.settled(rate) for rate in (machine.nics[nic], *ways))


def _parts(gpus: int, nics: int) -> Iterator[Sequence[Fraction]]:
    """For each GPU its part of each card: both are laid along one line, each kind evenly, and overlap.

    With equally many, each GPU has a card; with six cards for four GPUs, the first has one and half of the second.
    """
    for gpu in range(gpus):
        overlaps = (min((gpu + 1) * nics, (nic + 1) * gpus) - max(gpu * nics, nic * gpus) for nic in range(nics))
        yield [Fraction(max(0, overlap), gpus) for overlap in overlaps]
