"""The cluster file: JSON or YAML with the same keys.

servers: 4
gpus_per_server: 8              # or a number for each server: [8, 8, 4, 8]
intra_bandwidth: 450            # GB/s a GPU, one way
nic_bandwidth: 50
intra_latency: 3e-7             # seconds a message; optional
nic_latency: 2.6e-6             # optional
intra_fabric: switch            # or mesh; optional
"""

from __future__ import annotations

from pathlib import Path

from comm_plans.all_to_all.cluster import INTRA_LATENCY, MOST_RANKS, NIC_LATENCY, Cluster
from comm_plans.errors import ClusterError, PlansError
from comm_plans.exact import exact
from comm_plans.readers.plain_document import LARGEST, parse_document

NEEDED = ("servers", "gpus_per_server", "intra_bandwidth", "nic_bandwidth")
KEYS = (*NEEDED, "intra_latency", "nic_latency", "intra_fabric")


def is_cluster_file(path: Path) -> bool:
    """Whether the file is a mapping with the key `servers`, which no topology has; a pipe, read but once, is not."""
    if not path.is_file():
        return False
    try:
        document = _document(path)
    except PlansError:
        return False
    return isinstance(document, dict) and "servers" in document


def read_cluster(path: Path) -> Cluster:
    """Read a cluster file of up to 1 MB. Raises ClusterError where it is missing, too large or wrong."""
    try:
        return cluster_from(_document(path))
    except PlansError as error:
        raise ClusterError(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from error


def cluster_from(document: object) -> Cluster:
    """The cluster that a mapping with the keys of a cluster file describes. Raises ClusterError where it is wrong."""
    if not isinstance(document, dict):
        raise ClusterError(f"a cluster is a mapping with the keys {', '.join(KEYS)}")
    for key in document:
        if key not in KEYS:
            raise ClusterError(f"the key {str(key)[:40]!r} is unknown; the keys are {', '.join(KEYS)}")
    for key in NEEDED:
        if key not in document:
            raise ClusterError(f"{key} is missing; the keys are {', '.join(KEYS)}")
    return Cluster(
        _sizes(_count(document["servers"], "servers"), document["gpus_per_server"]),
        _number(document["intra_bandwidth"], "intra_bandwidth"),
        _number(document["nic_bandwidth"], "nic_bandwidth"),
        _number(document.get("intra_latency", INTRA_LATENCY), "intra_latency"),
        _number(document.get("nic_latency", NIC_LATENCY), "nic_latency"),
        str(document.get("intra_fabric", "switch")),
    )


def cluster_document(cluster: Cluster) -> dict[str, object]:
    """The inverse of `cluster_from`, in plain values."""
    return {
        "servers": cluster.servers,
        "gpus_per_server": list(cluster.sizes),
        **{key: getattr(cluster, key) for key in KEYS[2:]},
    }


def _document(path: Path) -> object:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise ClusterError(f"{path} cannot be read: {error.strerror}") from error
    return parse_document(data.decode(errors="replace"), str(path))


def _sizes(servers: int, gpus: object) -> tuple[int, ...]:
    """One number for all servers, or a list with one for each."""
    if not isinstance(gpus, list):
        return (_count(gpus, "gpus_per_server"),) * servers
    if len(gpus) != servers:
        raise ClusterError(f"gpus_per_server lists {len(gpus)} servers, but servers is {servers}; make them agree")
    return tuple(_count(size, "gpus_per_server") for size in gpus)


def _count(value: object, key: str) -> int:
    number = _number(value, key)
    if number != int(number) or not 1 <= number <= MOST_RANKS:
        raise ClusterError(f"{key} is {str(value)[:40]!r}; give a whole number from 1 to {MOST_RANKS}")
    return int(number)


def _number(value: object, key: str) -> float:
    try:
        return float(exact(value))
    except (ValueError, OverflowError) as error:
        raise ClusterError(f"{key} is {str(value)[:40]!r}; give a plain number such as 450 or 2.6e-6") from error
