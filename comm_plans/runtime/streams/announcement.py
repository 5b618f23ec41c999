"""What ranks tell each other through the store before they connect: which plan they follow and where they listen."""

from __future__ import annotations

import json
import secrets
from datetime import timedelta
from ipaddress import ip_address

from torch.distributed import Store

from comm_plans.runtime.program import RankProgram
from comm_plans.runtime.transport import TransportError


def announce(
    store: Store, program: RankProgram, place: tuple[str, int], timeout: float
) -> tuple[bytes, list[tuple[str, int]]]:
    """The secret that rank 0 made, and where each rank listens.

    Raises TransportError where digests differ, a rank does not come, or listens where others cannot reach it.
    """
    keys = [f"rank{rank}" for rank in range(program.world_size)]
    try:
        if program.rank == 0:
            store.set("secret", secrets.token_hex(32))
        store.set(keys[program.rank], json.dumps([program.digest, *place]))
        store.wait(["secret", *keys], timedelta(seconds=timeout))
        told = [json.loads(store.get(key)) for key in keys]
        secret = bytes.fromhex(store.get("secret").decode())
    except RuntimeError as error:
        raise TransportError(
            f"not all {program.world_size} ranks came to start {program.collective} within {timeout:g} s; "
            f"look for one that ended or lags behind ({str(error).splitlines()[0][:120]})"
        ) from error
    _check_digests([digest for digest, _, _ in told], program.collective)
    _check_hosts([host for _, host, _ in told])
    return secret, [(host, port) for _, host, port in told]


def _check_digests(digests: list[str], collective: str) -> None:
    for rank, digest in enumerate(digests):
        if digest != digests[0]:
            raise TransportError(
                f"rank 0 follows the {collective} plan {digests[0][:12]} and rank {rank} the plan {digest[:12]}; "
                "give all ranks the same plan"
            )


def _check_hosts(hosts: list[str]) -> None:
    """Raise TransportError where some rank can only be reached from its own machine, on which not all ranks are."""
    local = [ip_address(host).is_loopback for host in hosts]
    if any(local) and not all(local):
        rank = local.index(True)
        raise TransportError(
            f"rank {rank} listens on {hosts[rank]}, where other machines cannot reach it; "
            "name the data's network interface in GLOO_SOCKET_IFNAME"
        )
