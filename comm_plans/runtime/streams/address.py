"""Which of this machine's addresses the data travels by: listeners bind to that one only."""

from __future__ import annotations

import fcntl
import os
import socket
import struct

from torch.distributed import PrefixStore, Store, TCPStore

from comm_plans.runtime.transport import TransportError

SIOCGIFADDR = 0x8915  # Linux: the IPv4 address of an interface
LOOPBACK = "127.0.0.1"


def data_address(store: Store, interface: str | None) -> str:
    """The IPv4 address of `interface`, else of the one that GLOO_SOCKET_IFNAME names, else the one from which the
    store's host is reached. Raises TransportError for an interface that is missing or has no such address."""
    named = interface or os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
    return _of_interface(named) if named else _towards(_tcp_store(store))


def _of_interface(name: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
        except OSError as error:
            raise TransportError(
                f"the network interface {name} has no IPv4 address here ({error.strerror}); "
                f"name one of {', '.join(each for _, each in socket.if_nameindex())}"
            ) from error
    return socket.inet_ntoa(answer[20:24])


def _tcp_store(store: Store) -> TCPStore | None:
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    return store if isinstance(store, TCPStore) else None


def _towards(store: TCPStore | None) -> str:
    """The address from which this machine reaches the store's host; no packet is sent."""
    if store is None:
        return LOOPBACK
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((store.host, store.port))
        except OSError as error:
            raise TransportError(
                f"the store's host {store.host} is not reached by IPv4 ({error}); name the data's network interface"
            ) from error
        return str(probe.getsockname()[0])
