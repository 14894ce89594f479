"""Keys of clients: what tells one from another, for limits that each of them has.

The rules that live here, and only here:

* An IPv6 client is its network of 64 bits: within it a host chooses its address.
  [RFC 4291, section 2.5.1]
* An IPv4 address in IPv6 form is that IPv4 address.          [RFC 4291, section 2.5.5.2]
* Long names, which a peer may choose, are kept as their hash: they bound no memory.
"""

from __future__ import annotations

import socket
import struct
from typing import Final

__all__ = ["client_key", "peer_uid", "principal_key", "user_key"]

_MAX_NAME: Final = 64
# A process id, a user id and a group id.                                [unix(7)]
_PEERCRED: Final = struct.Struct("iII")


def client_key(address: str) -> str:
    """Return the key of a client that is known by its address, or by a name of its proxy."""
    if ":" in address:
        address = _network(address)
    return address if len(address) <= _MAX_NAME else f"hash {hash(address):x}"


def principal_key(key: str) -> str:
    """Return the key of a client that is known by its principal."""
    return f"principal {key}"


def user_key(uid: int | None) -> str:
    """Return the key of a client on a Unix socket: its user, where the system tells."""
    return "unix" if uid is None else f"user {uid}"


def peer_uid(sock: socket.socket) -> int | None:
    """Return the user of the process at the other end of a Unix socket, or None."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    try:
        found = sock.getsockopt(socket.SOL_SOCKET, option, _PEERCRED.size)
    except OSError:
        return None  # it is gone
    uid: int = _PEERCRED.unpack(found)[1]
    return uid


def _network(address: str) -> str:
    """Return the network of an IPv6 address; an IPv4 address in IPv6 form, or another name."""
    # Imported here: most addresses are of IPv4.
    from ipaddress import IPv6Address

    try:
        parsed = IPv6Address(address)
    except ValueError:
        return address
    mapped = parsed.ipv4_mapped
    return str(mapped) if mapped is not None else f"{int(parsed) >> 64:x}::/64"
