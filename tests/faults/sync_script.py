"""A script with a client that blocks, for tests that interrupt it or let it forget to close.

It says on stdout how far it is, and, when it was interrupted, how many children it has left.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from trunkline import Stdio, TrunklineError
from trunkline.client.sync import SyncClient

HERE = Path(__file__).parent
SERVER = Stdio([sys.executable, "-u", str(HERE / "server.py"), '{"grace": 0.2}'])
# Takes no notice of the end of its input, nor of SIGTERM, and says from when on; the second serves
# until its input ends.
DEAF = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.orig_argv[-1]).write_text("begun")
time.sleep(3600)
"""
STUBBORN = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
sys.argv = ["server.py", "{{}}"]
import server
server.app.run()
{DEAF}
"""

count = 0


def interrupted(number: int, frame: object) -> None:
    global count
    count += 1
    say(f"interrupt {count}")
    raise KeyboardInterrupt


def say(text: str) -> None:
    # Not by print: this may come in the middle of another.
    os.write(1, f"{text}\n".encode())


def left() -> str:
    found = 0
    for task in Path("/proc/self/task").iterdir():
        found += len((task / "children").read_text().split())
    return f"{found} children, {threading.active_count()} threads"


def cleaned_up(marker: str) -> str:
    """Return what becomes of a tool that was interrupted, while the connection lasts."""
    for _ in range(1000):
        if Path(marker).read_text() == "cleaned up":
            return "cleaned up"
        time.sleep(0.01)
    return "it goes on"


def say_when_waiting(client: SyncClient) -> None:
    background = client._link._background
    for _ in range(10_000):
        if background is not None and background._works:
            say("waiting")
            return
        time.sleep(0.001)


def connecting(grace: str, marker: str) -> None:
    client = SyncClient(Stdio([sys.executable, "-c", DEAF, marker], grace=float(grace)))
    try:
        client.connect()
    except KeyboardInterrupt:
        say(left() if count == 1 else "gave up")


def calling(marker: str) -> None:
    with SyncClient(SERVER) as client:
        try:
            client.call_tool("announce", {"path": marker})
        except KeyboardInterrupt:
            say(cleaned_up(marker))
            say(client.call_tool("echo", {"text": "still usable"}).text)
    say(left())


def waiting(marker: str) -> None:
    with SyncClient(SERVER) as client:
        call = client.submit_tool("announce", {"path": marker})
        threading.Thread(target=say_when_waiting, args=(client,)).start()
        try:
            call.result()
        except KeyboardInterrupt:
            say(cleaned_up(marker))
            say(f"cancelled: {call.cancelled()}")
            client.list_tools()
    say(left())


def listening(uri: str) -> None:
    with SyncClient(SERVER) as client:
        try:
            with client.listen(uris=[uri]) as changes:
                say("listening")
                for _ in changes:
                    say("told")
        except KeyboardInterrupt:
            say(client.call_tool("echo", {"text": "still usable"}).text)
    say(left())


def closing(grace: str, marker: str) -> None:
    client = SyncClient(Stdio([sys.executable, "-c", STUBBORN, marker], grace=float(grace)))
    client.connect()
    try:
        client.close()
    except KeyboardInterrupt:
        say(left() if count == 1 else "gave up")


def uncaught(marker: str) -> None:
    client = SyncClient(SERVER)
    client.connect()
    client.call_tool("announce", {"path": marker})


def forgetting(how: str) -> None:
    client = SyncClient(SERVER)
    client.connect()
    say(client.call_tool("echo", {"text": "connected"}).text)
    sys.stdin.readline()
    if how == "exit":
        sys.exit(3)
    if how == "raise":
        raise ValueError("the script has a fault")


def forked(_: str) -> None:
    """Use, close and make clients in a forked process; the parent's goes on."""
    with SyncClient(SERVER) as client:
        pid = os.fork()
        if pid == 0:
            for verb in (client.list_tools, client.connect):
                try:
                    verb()
                except TrunklineError as error:
                    say(str(error).partition(",")[0])
            say(f"connected: {client.is_connected}")
            client.close()
            with SyncClient(SERVER) as other:
                say(other.call_tool("echo", {"text": "a loop of its own"}).text)
            say(f"the child ends with {left()}")
            sys.exit()
        os.waitpid(pid, 0)
        say(client.call_tool("echo", {"text": "the parent goes on"}).text)
    say(left())


if __name__ == "__main__":
    signal.signal(signal.SIGINT, interrupted)
    globals()[sys.argv[1]](*sys.argv[2:])
