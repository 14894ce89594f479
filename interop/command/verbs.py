"""The columns: what each verb must print, and with which status it must exit.

A cell without a `Use` still runs the verb: it must fail with a sentence and its own status.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from shlex import join
from typing import Any, Final, NamedTuple

from ..checks import expect
from .scene import COMMAND, Scene
from .servers import Counts, Server, Use

__all__ = ["OTHER_VERBS", "VERBS", "Verb"]

Check = Callable[[Scene], Awaitable[None]]


class Verb(NamedTuple):
    """One column."""

    name: str
    check: Check
    # Returns why the verb has nothing to do with a server, or an empty text.
    reason: Callable[[Server], str] = lambda server: ""
    # Whether it is not run with a server that it has nothing to do with.
    is_only_offered: bool = False


def _reason_of(member: str) -> Callable[[Server], str]:
    def reason(server: Server) -> str:
        use = getattr(server, member)
        return use if isinstance(use, str) else ""

    return reason


def _no_login(server: Server) -> str:
    return "" if server.is_protected else "the server needs no login"


# Using a server


async def _list(scene: Scene) -> None:
    server = scene.server
    shown = (await scene.run("list")).expect(0)
    first, *lines = shown.out.splitlines()
    expect(f"{server.shown}, " in f"{first.replace(')', '')} ", True, first)
    expect(first.endswith(f", MCP {server.revision}"), True, first)
    document = json.loads((await scene.run("list", "-o", "json")).expect(0).out)
    expect(document["format"], "trunkline.listing/1")
    expect(document["revision"], server.revision)
    kinds = ("tools", "resources", "resourceTemplates", "prompts")
    expect(Counts(*(len(document[kind]) for kind in kinds)), server.counts)
    heads = ("Tools", "Resources", "Resource templates", "Prompts")
    wanted = [
        f"{head} ({count})" for head, count in zip(heads, server.counts, strict=True) if count
    ]
    expect([line for line in lines if line in wanted], wanted)
    for tool in document["tools"]:
        expect(re.search(rf"^  {re.escape(tool['name'])}\b", shown.out, re.M) is not None, True)
    one = document["tools"][0]["name"]
    alone = (await scene.run("list", "tools", one)).expect(0)
    expect(one in alone.out.splitlines()[0], True, alone.out)
    # For `diff`.
    (scene.folder / "listing.json").write_text(json.dumps(document))


async def _call(scene: Scene) -> None:
    server, use = scene.server, scene.server.call
    if isinstance(use, Use):
        (await scene.run("call", *use.words, "--trace", "{folder}/trace.jsonl")).expect(
            0, out=use.shows
        )
        result = json.loads((await scene.run("call", *use.words, "-o", "json")).expect(0).out)
        expect(result.get("isError", False), False)
        expect(bool(result["content"]), True)
    else:
        # What the server refuses is recorded as well.
        trace = ("--trace", "{folder}/trace.jsonl")
        (await scene.run("call", *server.failing.words, *trace)).expect(1, err=server.failing.shows)
    (await scene.run("call", *server.failing.words)).expect(1, err=server.failing.shows)
    unknown = (await scene.run("call", "no-such-tool")).expect(2, err="no tool 'no-such-tool'")
    expect(unknown.out, "")


async def _read(scene: Scene) -> None:
    use, missing = scene.server.read, scene.server.missing
    if isinstance(use, Use):
        (await scene.run("read", *use.words)).expect(0, out=use.shows)
    refused = (await scene.run("read", *missing.words)).expect(1, err=missing.shows)
    expect((refused.out, refused.err.startswith("trunkline read: ")), ("", True), refused.err)


async def _prompt(scene: Scene) -> None:
    use = scene.server.prompt
    if isinstance(use, Use):
        (await scene.run("prompt", *use.words)).expect(0, out=use.shows)
        (await scene.run("prompt", "no-such-prompt")).expect(2, err="no prompt 'no-such-prompt'")
        return
    refused = await scene.run("prompt", "no-such-prompt")
    expect((refused.status in (1, 2), refused.out), (True, ""), refused.err)
    expect(refused.err.startswith("trunkline prompt: "), True, refused.err)


async def _ping(scene: Scene) -> None:
    asked = "server/discover" if scene.server.revision == "2026-07-28" else "ping"
    shown = (await scene.run("ping", "-c", "2", "--interval", "0.01")).expect(0)
    expect(f" answers {asked} in MCP {scene.server.revision}\n" in shown.out, True, shown.out)
    expect("2 sent, 2 answered; min " in shown.out, True, shown.out)


async def _shell(scene: Scene) -> None:
    server = scene.server
    calls = [server.failing] if isinstance(server.call, str) else [server.call, server.failing]
    lines = [
        "list tools",
        *(scene.fill(join(["call", *use.words])) for use in calls),
        scene.fill("save {folder}/shell.jsonl"),
    ]
    # Without a terminal, the status is that of the first command that failed.
    done = await scene.run("shell", stdin="\n".join(lines).encode())
    done.expect(1, out=rf"Tools \({server.counts.tools}\)", err=server.failing.shows)
    if isinstance(server.call, Use):
        pattern = server.call.shows.removesuffix("$")
        expect(re.search(pattern, done.out, re.M) is not None, True, done.out[-300:])
    (await scene.run_plain("validate", "shell.jsonl")).expect(0, err=f"MCP {server.revision}")


# Checking a server


async def _diff(scene: Scene) -> None:
    (await scene.run("diff", first=["listing.json"])).expect(0, out="no changes", err="")
    # An older release had a tool more.
    document = json.loads((scene.folder / "listing.json").read_text())
    document["tools"].append({"name": "gone", "inputSchema": {"type": "object"}})
    (scene.folder / "older.json").write_text(json.dumps(document))
    broken = await scene.run_plain("diff", "-o", "json", "older.json", "listing.json")
    changes = json.loads(broken.expect(1).out)["changes"]
    found = [(each["rule"], each["level"], each["what"]) for each in changes]
    expect(found, [("listing.tool.removed", "breaking", "tool gone")])


async def _validate(scene: Scene) -> None:
    good = await scene.run_plain("validate", "trace.jsonl", "--format", "json")
    report = json.loads(good.expect(0).out)
    expect(report["revision"], scene.server.revision)
    expect((report["ok"], report["counts"]["error"]), (True, 0))
    expect(len(report["messages"]) >= 4, True, "as many messages as a call needs")
    # A message of the server that breaks a rule.
    lines = (scene.folder / "trace.jsonl").read_text().splitlines()
    at = next(
        number
        for number, line in reversed([*enumerate(lines)])
        if '"message"' in line and json.loads(line)["from"] == "server"
    )
    event = json.loads(lines[at])
    event["message"]["jsonrpc"] = "1.0"
    lines[at] = json.dumps(event)
    (scene.folder / "broken.jsonl").write_text("\n".join(lines))
    found = await scene.run_plain("validate", "broken.jsonl")
    found.expect(1, out=f"broken.jsonl:{at + 1}: error ", err="")


async def _proxy(scene: Scene) -> None:
    use = scene.server.call
    target = [scene.url] if scene.url else ["--", *scene.command]
    proxy = [*COMMAND, "proxy", "--fail", "--record", "{folder}/proxy.jsonl", *target]
    words, status, shows = (
        (use.words, 0, use.shows) if isinstance(use, Use) else (scene.server.failing.words, 1, "")
    )
    through = await scene.run_plain("call", *words, "--", *proxy)
    through.expect(status, out=shows, err=None if status == 0 else scene.server.failing.shows)
    (await scene.run_plain("validate", "proxy.jsonl")).expect(0, err="MCP ")


# Hosts: each row has another one


async def _install(scene: Scene) -> None:
    words = ["--to", scene.host, "--name", "elsewhere", "--create"]
    for name, value in () if scene.url else scene.server.environment.items():
        words += ["--env", f"{name}={value}"]
    # Without a terminal nothing is written.
    (await scene.run("install", *words)).expect(2, err="add --yes to write")
    expect(await _entries(scene), [])
    shown = await scene.run("install", *words, "--yes")
    shown.expect(0, out=re.escape(scene.url or scene.command[-1]), err="'elsewhere' is added to ")


async def _hosts(scene: Scene) -> None:
    (entry,) = await _entries(scene, "--check", "--project")
    expect(entry["name"], "elsewhere")
    server = entry.get("server", "")
    expect(f"{scene.server.shown}, " in server.replace(")", ""), True, str(entry))
    expect(server.endswith(f", MCP {scene.server.revision}"), True, server)
    # The entry is a target of every verb.
    listed = (await scene.run_plain("list", f"{scene.host}:elsewhere", "tools")).expect(0)
    expect(f"Tools ({scene.server.counts.tools})" in listed.out, True, listed.out)
    shown = (await scene.run_plain("hosts", scene.host)).expect(0)
    expect(re.search(r"^ +elsewhere\b", shown.out, re.M) is not None, True, shown.out)


async def _uninstall(scene: Scene) -> None:
    words = ["uninstall", "elsewhere", "--from", scene.host, "--yes"]
    (await scene.run_plain(*words)).expect(0, err="'elsewhere' is removed from ")
    expect(await _entries(scene), [])
    (await scene.run_plain(*words)).expect(2, err="elsewhere")


async def _entries(scene: Scene, *words: str) -> list[dict[str, Any]]:
    """Return the servers that the host of a row has."""
    done = (await scene.run_plain("hosts", scene.host, "-o", "json", *words)).expect(0)
    (host,) = json.loads(done.out)["hosts"]
    return [entry for file in host["files"] for entry in file["entries"]]


# Logging in


async def _login(scene: Scene) -> None:
    before = await scene.run("list")
    before.expect(1, err=f"trunkline login {re.escape(scene.url)}")
    (await scene.run("login", "--timeout", "30")).expect(0, out="^logged in\n", err="")


async def _auth(scene: Scene) -> None:
    shown = (await scene.run_plain("auth", "status", "--json")).expect(0)
    expect(scene.url in shown.out, True, shown.out)
    kept = [each.read_text() for each in scene.folder.glob("home/**/tokens/*") if each.is_file()]
    secrets = re.findall(r'"(?:access|refresh)_token": ?"([^"]+)"', "".join(kept))
    expect(len(secrets) > 0, True, "tokens are kept")
    expect([each for each in secrets if each in shown.out], [])


async def _logout(scene: Scene) -> None:
    (await scene.run("logout")).expect(0, err="")
    (await scene.run_plain("auth", "status")).expect(1, err="")
    (await scene.run("list")).expect(1, err="trunkline login ")


# Verbs that are not columns, and what stands for them.
OTHER_VERBS: Final = {
    "serve": "runs the project of `init` for other clients: `project`",
    "init": "writes the project that other clients use: `project`",
    "spec": "connects to nothing",
    "completion": "connects to nothing",
}
VERBS: Final = (
    Verb("login", _login, _no_login, is_only_offered=True),
    Verb("list", _list),
    Verb("call", _call, _reason_of("call")),
    Verb("read", _read, _reason_of("read")),
    Verb("prompt", _prompt, _reason_of("prompt")),
    Verb("ping", _ping),
    Verb("shell", _shell),
    Verb("diff", _diff),
    Verb("proxy", _proxy),
    Verb("validate", _validate),
    Verb("install", _install),
    Verb("hosts", _hosts),
    Verb("uninstall", _uninstall),
    Verb("auth", _auth, _no_login, is_only_offered=True),
    Verb("logout", _logout, _no_login, is_only_offered=True),
)
