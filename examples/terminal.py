"""The command in use: a server on a socket, and what one does with it from a terminal.

    make demo

Each line that begins with a $ is run as it stands, in a folder of its own. One that does not end
as it should makes this fail.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SERVER = Path(__file__).with_name("weather.py").resolve()
# What is typed, and the exit status that it ends with.
LINES = (
    ("trunkline list unix:weather.sock", 0),
    ("trunkline call unix:weather.sock forecast city=Oslo days=2", 0),
    ("trunkline call unix:weather.sock forecast city=Oslo days=two", 2),
    ("trunkline call unix:weather.sock pack city=Nuuk --answer days=5 --revision 2025-11-25", 0),
    ("trunkline read unix:weather.sock weather://now/Rome", 0),
    ("trunkline ping unix:weather.sock", 0),
    ("trunkline diff unix:weather.sock unix:weather.sock", 0),
)


def main() -> int:
    """Run every line; return 0 if all ended as they should."""
    # The command of the same environment, wherever that is.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as folder:
        print(f"\n$ trunkline serve {SERVER.name} --unix weather.sock &", flush=True)
        command = ["trunkline", "serve", str(SERVER), "--unix", "weather.sock"]
        server = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
        try:
            wrong = _play(Path(folder), environment)
        finally:
            server.send_signal(signal.SIGTERM)
            status = server.wait(30)
        left = os.listdir(folder)
    print(f"\nThe server ended with {status}, and left {left or 'nothing'} behind.")
    return 1 if wrong or status or left else 0


def _play(folder: Path, environment: dict[str, str]) -> list[str]:
    deadline = time.monotonic() + 30
    while not (folder / "weather.sock").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    wrong: list[str] = []
    for line, wanted in LINES:
        print(f"\n$ {line}", flush=True)
        run = subprocess.run(
            shlex.split(line),
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )
        if run.returncode != wanted:
            print(f"WRONG: it ended with {run.returncode}, and not with {wanted}")
            wrong.append(line)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
