"""Put `trunkline proxy` in the place of a server, and write down what comes out behind it.

    python -m interop.proxied WAY MODULE [ARGUMENT ...]

By "stdio" the proxy starts the server itself. By "unix" a client of standard streams is led
through a socket: one proxy listens and starts servers, the other is its client. Behind the last
one stands another `tee`, whose recording is named after that of the `tee` before us, which says
its name in INTEROP_RECORDING: the two have to hold the same lines.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

PROXY = [sys.executable, "-m", "trunkline", "proxy"]


def main() -> int:
    """Run the proxy, or the two of them; return the exit status."""
    way, *server = sys.argv[1:]
    recording = os.environ["INTEROP_RECORDING"]
    behind = ["--", sys.executable, "-m", "interop.tee", f"{recording}.behind"]
    behind += [sys.executable, "-m", *server]
    heard = ["--record", f"{recording}.proxy", "--judge"]
    if way == "stdio":
        os.execv(sys.executable, [*PROXY, *heard, *behind])
    with tempfile.TemporaryDirectory() as folder:
        return _through(f"unix:{folder}/proxy.sock", heard, behind)


def _through(address: str, heard: list[str], behind: list[str]) -> int:
    listening = subprocess.Popen([*PROXY, address, *behind], stderr=subprocess.PIPE)
    try:
        assert listening.stderr is not None
        listening.stderr.readline()  # says that it listens
        return subprocess.call([*PROXY, *heard, address])
    finally:
        listening.terminate()
        listening.wait()


if __name__ == "__main__":
    sys.exit(main())
