"""Connections that say nothing, or half of a request: `idle_client.py PORT COUNT HEX`.

They stay open until the end of the input. Then it prints how many the server has left open.
"""

from __future__ import annotations

import socket
import sys


def main(port: int, count: int, start: bytes) -> None:
    found = []
    for _ in range(count):
        sock = socket.create_connection(("127.0.0.1", port), timeout=60)
        sock.sendall(start)
        found.append(sock)
    print(len(found), flush=True)
    sys.stdin.read()
    print(sum(map(is_open, found)), flush=True)


def is_open(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return sock.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3]))
