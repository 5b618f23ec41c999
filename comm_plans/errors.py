"""What can go wrong with a network or a plan, as one family of errors whose texts are shown to people as they are."""

from __future__ import annotations

from collections.abc import Iterable

SHOWN = 8
LONGEST = 2000  # characters of a sentence


def presentable(text: str) -> str:
    """The text without control characters, which could steer a terminal, and without its middle if it is very long."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    return "".join(sign if (sign >= " " and not "\x7f" <= sign <= "\x9f") or sign in "\n\t" else "�" for sign in text)


class PlansError(Exception):
    """Any fault in what `comm_plans` was given; its text is one sentence: what, where, how to mend it."""

    def __str__(self) -> str:
        return presentable(super().__str__())


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
