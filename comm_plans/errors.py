"""What can go wrong with a network or a plan, as one family of errors whose texts are shown to people as they are."""

from __future__ import annotations

from collections.abc import Iterable

SHOWN = 8


class PlansError(Exception):
    """Any fault in what `comm_plans` was given; its text is one sentence: what, where, how to mend it."""


class TopologyError(PlansError):
    """A topology, or the file or name it came from, makes no sense."""


class Disconnected(TopologyError):  # noqa: N818 - the field's word
    """Some rank cannot send to, or receive from, the rest of the network."""


class UnbalancedSwitch(TopologyError):  # noqa: N818 - the field's word
    """A switch sends more than it receives, so that the cut bound cannot be reached (ForestColl's precondition)."""


class TooFine(TopologyError, OverflowError):  # noqa: N818 - says what the bandwidths are
    """Bandwidths so far apart that their exact flows do not fit the 62 bits that flows are counted in."""


class ClusterError(PlansError):
    """A cluster of servers, or the file it came from, makes no sense."""


class TrafficError(PlansError):
    """A traffic matrix, or the file it came from, is no amount of bytes from every rank to every other."""


class PlanError(PlansError):
    """A plan does not do what it claims, or is no plan at all."""


def listed(names: Iterable[str]) -> str:
    """Name the first few of `names` and count the rest, so that a sentence stays a sentence."""
    names = list(names)
    rest = len(names) - SHOWN
    shown = ", ".join(names[:SHOWN])
    return f"{shown} and {rest} more" if rest > 0 else shown
