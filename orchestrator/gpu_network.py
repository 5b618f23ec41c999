"""The network that the GPUs of a cluster stand on, as nvidia-smi tells it on each node."""

from collections.abc import Mapping

from comm_plans.readers.reading import read_cluster
from comm_plans.topology import Topology
from orchestrator.errors import UserError

BY_ORDER = "the first worker of a node is taken to have its first GPU, and so on"


def told_by_gpus(workers: int, matrices: Mapping[str, str | None]) -> tuple[Topology, str]:
    """A rank for each GPU of the nodes, and a remark on what was assumed.

    matrices: what `nvidia-smi topo -m` printed, by the address of the node. Raises UserError where a node tells none or
    there are not as many GPUs as workers, and PlansError where a text cannot be read.
    """
    silent = [address for address, told in matrices.items() if not told]
    reading = None if silent else read_cluster([(address, str(told).encode()) for address, told in matrices.items()])
    if reading is None:
        address = (*silent, *matrices)[0]
        raise UserError(f"topology=auto: nvidia-smi topo -m tells nothing on {address}; mend that or name a topology")
    if len(reading.topology.ranks) != workers:
        there = len(reading.topology.ranks)
        raise UserError(
            f"topology=auto finds {there} GPUs and cluster.workers={workers}; make them equal or name a file"
        )
    return reading.topology, "; ".join(("topology=auto", *reading.remarks, BY_ORDER))
