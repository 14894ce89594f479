"""A script with a client that blocks, for tests that interrupt it or let it forget to close.

It says on stdout how far it is, and, when it was interrupted, how many children it has left.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from trunkline import Server, Stdio, TrunklineError
from trunkline.client.sync.client import SyncClient

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
        try:
            found += len((task / "children").read_text().split())
        except OSError:
            continue  # a thread that has just ended
    return f"{found} children, {threading.active_count()} threads"


def cleaned_up(marker: str) -> str:
    """Return what becomes of a tool that was interrupted, while the connection lasts."""
    for _ in range(1000):
        if Path(marker).read_text() == "cleaned up":
            return "cleaned up"
        time.sleep(0.01)
    return "it goes on"


def say_when_waiting(client: SyncClient) -> None:
    loop_thread = client._proxy._loop_thread
    for _ in range(10_000):
        if loop_thread is not None and loop_thread._works:
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


def inside_of_a_loop(how: str, marker: str) -> None:
    """Call a tool that does not end, from within a loop that runs on this very thread."""
    # Only where this is in place does `asyncio.run` put its own.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def cell() -> None:
        with SyncClient(SERVER) as client:
            try:
                client.call_tool("announce", {"path": marker})
            except KeyboardInterrupt:
                say("interrupted")
                say(cleaned_up(marker))
                say(client.call_tool("echo", {"text": "still usable"}).text)

    async def main() -> None:
        task = asyncio.current_task()
        threading.Thread(target=say_when_kept, args=(task,), daemon=True).start()
        cell()

    try:
        if how == "asyncio.run":
            asyncio.run(main())
        else:
            loop = asyncio.new_event_loop()
            loop.call_soon(cell)
            loop.call_soon(loop.stop)
            loop.run_forever()
            loop.close()
    except KeyboardInterrupt:
        say("the loop had kept one")
    say(left())


def say_when_kept(task: asyncio.Task[None]) -> None:
    while not task.cancelling():
        time.sleep(0.001)
    say("kept")


def many(count: str) -> None:
    """Connect, call and close while one signal after the other comes, wherever that is."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    app = Server("many")

    @app.tool
    async def two() -> int:
        return 2

    over = threading.Event()
    # No event: whoever is interrupted as he sets one may leave it locked.
    begun: list[bool] = []

    def bombard() -> None:
        while not begun:
            time.sleep(0.001)
        for _ in range(int(count)):
            time.sleep(random.uniform(0.001, 0.012))
            os.kill(os.getpid(), signal.SIGINT)
        # The last is seen before anything else is said.
        time.sleep(0.5)
        over.set()

    threading.Thread(target=bombard, daemon=True).start()
    interrupts = 0
    while not over.is_set():
        try:
            begun.append(True)
            # Looked at in here: nobody would catch what comes between one and the next.
            while not over.is_set():
                with SyncClient(app) as client:
                    for _ in range(5):
                        client.call_tool("two")
        except KeyboardInterrupt:
            interrupts += 1
    # What was left to go on without whoever was interrupted ends soon.
    for _ in range(1000):
        if threading.active_count() == 1:
            break
        time.sleep(0.01)
    say("interrupted" if interrupts else "not once interrupted")
    with SyncClient(app) as client:
        say(f"still usable: {client.call_tool('two').value}")
    say(left())


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
