"""What stands in the network lab that is up: the one file by which launchers, benchmarks and `cluster=lab` know it.

`scripts/network_lab.py up` writes it, `down` removes it. It is one JSON object:

    topology           absolute path of the topology file that the lab was built from
    digest             SHA-256 of what the file says, by which an edited file is told from the one built
    complete           false while `up` is at work, or after one that was killed
    mark               value of NETWORK_LAB_MARK in the environment of the lab's own processes
    ranks, switches    [{name, namespace, interface, address, management_address}], ranks in rank order;
                       programs in `namespace` bind to `interface`, which has `address`; the management
                       address is null in a lab without Ray
    links              [{ends: [a, b], rates: [bit/s from a to b, bit/s from b to a], cut}]
    management         {name, namespace, interface, address} of the unshaped network that Ray uses, or null:
                       the namespace that holds it, and what the root namespace reaches it by
    ray_address        host:port that a driver in the root namespace joins, or null
    ray_folder         Ray's temporary folder, which holds the token that its driver must show, or null

Nothing but the standard library is imported: a worker may read this before anything else.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from comm_plans.errors import PlansError

PATH = Path("/run/network-lab/state.json")
VARIABLE = "NETWORK_LAB_STATE"


class LabError(PlansError):
    """The network lab cannot do what was asked; the text is one sentence: what, where, how to mend it."""


@dataclass(frozen=True)
class LabNode:
    """A rank, a switch or the management network: its namespace, and the interface and address to reach it by."""

    name: str
    namespace: str
    interface: str
    address: str
    management_address: str | None = None


@dataclass(frozen=True)
class LabLink:
    """A link between two nodes. rates: bit/s from the first end to the second, and back. cut: the cable is pulled."""

    ends: tuple[str, str]
    rates: tuple[int, int]
    cut: bool = False


@dataclass(frozen=True)
class LabState:
    """The lab that is up, or half built where `complete` is false. The module says what each field holds."""

    topology: str
    digest: str
    complete: bool
    mark: str
    ranks: tuple[LabNode, ...]
    switches: tuple[LabNode, ...]
    links: tuple[LabLink, ...]
    management: LabNode | None = None
    ray_address: str | None = None
    ray_folder: str | None = None

    @property
    def nodes(self) -> tuple[LabNode, ...]:
        """Ranks in rank order, then switches."""
        return self.ranks + self.switches

    @property
    def ray_environment(self) -> dict[str, str]:
        """What a driver must have in its environment before it imports ray."""
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": f"{self.ray_folder}/token"}

    @classmethod
    def path(cls) -> Path:
        """Where the state lies: what the variable NETWORK_LAB_STATE says, else /run/network-lab/state.json."""
        return Path(os.environ.get(VARIABLE) or PATH).absolute()

    @classmethod
    def load(cls) -> LabState:
        """Read the state of the lab that is up. Raises LabError where there is none, or the file is not one."""
        path = cls.path()
        try:
            return cls.from_document(json.loads(path.read_text()))
        except FileNotFoundError:
            raise LabError(
                f"no network lab is up ({path} does not exist); start one with network_lab.py up FILE"
            ) from None
        except OSError as error:
            raise LabError(f"{path} cannot be read: {error.strerror}; run as the user who started the lab") from error
        except (ValueError, TypeError, KeyError) as error:
            raise LabError(f"{path} is no state of a network lab; remove it by hand") from error

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> LabState:
        """Build from the mapping in the file. Raises KeyError or TypeError where it is not one."""
        return cls(
            **{
                **document,
                "management": document["management"] and LabNode(**document["management"]),
                "ranks": tuple(LabNode(**node) for node in document["ranks"]),
                "switches": tuple(LabNode(**node) for node in document["switches"]),
                "links": tuple(
                    LabLink(tuple(link["ends"]), tuple(link["rates"]), link["cut"]) for link in document["links"]
                ),
            }
        )

    def to_document(self) -> dict[str, Any]:
        """Give the mapping that the file holds."""
        return asdict(self)
