"""How two ends of a connection prove to each other that they belong to one job, without showing its secret.

The end that connects sends a greeting of fixed length: a nonce, the program's digest, which wire this is, and their
HMAC under the job's secret. The other end answers with another HMAC over that.
"""

from __future__ import annotations

import hmac
import secrets
import struct

from comm_plans.runtime.streams.wires import Phase, Wire

FORM = struct.Struct("!16s32sBIII")
MAC_BYTES = 32
GREETING_BYTES = FORM.size + MAC_BYTES


def greeting(secret: bytes, digest: str, wire: Wire) -> bytes:
    """What the connecting end says first; `digest` is hexadecimal."""
    said = FORM.pack(secrets.token_bytes(16), bytes.fromhex(digest), *wire)
    return said + _mac(secret, said)


def greeted(secret: bytes, digest: str, data: bytes) -> Wire | None:
    """The wire that a greeting announces, or None where it is not one of this job and program."""
    said, mac = data[: FORM.size], data[FORM.size :]
    if not hmac.compare_digest(mac, _mac(secret, said)):
        return None
    _, told, phase, tree, source, target = FORM.unpack(said)
    return Wire(Phase(phase), tree, source, target) if told.hex() == digest else None


def answer(secret: bytes, data: bytes) -> bytes:
    """What the accepting end replies to a greeting."""
    return _mac(secret, b"answer" + data)


def _mac(secret: bytes, data: bytes) -> bytes:
    return hmac.digest(secret, data, "sha256")
