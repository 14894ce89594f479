"""What is said to each server of `servers`, and what is expected: one table for every client.

The conversations of a server follow each other on one connection, in the order of the table.
"""

from __future__ import annotations

from typing import Final
from unittest.mock import ANY

from tests.ports.steps import (
    ABSENT,
    Call,
    CallAsTask,
    Complete,
    Conversation,
    GetPrompt,
    ListNames,
    ReadResource,
    Watch,
)

__all__ = ["CONVERSATIONS", "SERVERS", "groups"]

PNG: Final = bytes.fromhex("89504e470d0a1a0a0000000d49484452")
GRAPH: Final = '{"things":{},"relations":[]}'
HISTORY: Final = "history://{branch}/{+path}"

FILES: Final = (
    Conversation(
        "files",
        "files are written, listed, read and moved",
        [
            ListNames(
                "tools", ["list_files", "read_file", "write_file", "move_file", "search_files"]
            ),
            Call("list_files", value=[], text="[]"),
            Call(
                "write_file",
                {"path": "a/b.md", "text": "one\ntwo\n"},
                text="wrote 8 characters to a/b.md",
                value=ABSENT,
            ),
            Call("list_files", value=[{"name": "a", "kind": "folder", "size": 0}]),
            Call("list_files", {"path": "a"}, value=[{"name": "b.md", "kind": "file", "size": 8}]),
            Call("read_file", {"path": "a/b.md"}, text="one\ntwo\n"),
            Call("read_file", {"path": "a/b.md", "head": 1.0}, text="one\n"),
            Call("move_file", {"source": "a/b.md", "to": "c.md"}, text="a/b.md is c.md now"),
            Call("search_files", {"pattern": "*.md"}, value=["c.md"]),
        ],
    ),
    Conversation(
        "files",
        "mistakes are named",
        [
            Call("read_file", {"path": "none"}, fails="There is no such file."),
            Call("read_file", {"path": "."}, fails="That is a folder."),
            Call("read_file", {"path": "../../../etc/hostname"}, fails="outside of the folder"),
            Call("read_file", {"path": "/etc/hostname"}, fails="outside of the folder"),
            Call("move_file", {"source": "c.md", "to": "../c.md"}, fails="outside of the folder"),
            Call("move_file", {"source": "c.md", "to": "c.md"}, fails="c.md exists already."),
            Call(
                "read_file",
                {"path": 5, "head": "all"},
                faulty='argument "path": expected a path, got an integer; '
                'argument "head": expected an integer or null, got a string',
            ),
            Call("read_file", {"path": "c.md", "head": 1.5}, faulty='argument "head"'),
            Call("read_file", {"path": "c.md", "tail": 1}, faulty="tail"),
            Call("delete_file", {"path": "c.md"}, refused=(-32602, "delete_file")),
        ],
    ),
    Conversation(
        "files",
        "files are resources, and nothing else is",
        [
            ListNames("resources", []),
            ListNames("templates", ["file:///{+path}"]),
            ReadResource("file:///c.md", "one\ntwo\n", "text/markdown"),
            Call("write_file", {"path": "x y/é.csv", "text": "1,2"}),
            ReadResource("file:///x%20y/%C3%A9.csv", "1,2", "text/csv"),
            ReadResource("file:///none.md"),
            ReadResource("file:///x%20y"),
            ReadResource("file:///../../etc/hostname"),
            ReadResource("file:///..%2F..%2Fetc%2Fhostname"),
            ReadResource("file:////etc/hostname"),
            ReadResource("file:///x/%2e%2e/%2e%2e/%2e%2e/etc/hostname"),
            Complete("resource", "file:///{+path}", "path", "c", ["c.md"]),
        ],
    ),
)

DATABASE: Final = (
    Conversation(
        "database",
        "rows are inserted, found and changed",
        [
            Call(
                "insert_goods",
                {"goods": {"hat": 20, "coat": 90}},
                value=2,
                text="2",
                progress=[(1, 2, "hat"), (2, 2, "coat")],
            ),
            Call(
                "query",
                {"sql": "SELECT name, price FROM goods WHERE price > ?", "values": [50]},
                value={"columns": ["name", "price"], "rows": [["coat", 90]], "more": False},
            ),
            Call(
                "execute",
                {"sql": "UPDATE goods SET price = price + ?", "values": [0.5]},
                value=2,
                logs=[("info", "2 rows changed")],
            ),
            Call(
                "query",
                {"sql": "SELECT max(price), NULL FROM goods"},
                value={"columns": ["max(price)", "NULL"], "rows": [[90.5, None]], "more": False},
            ),
            Call("execute", {"sql": "CREATE TABLE many AS SELECT 1 AS n"}, value=-1),
            Call("query", {"sql": "SELECT 1 FROM none"}, fails="no such table: none"),
            Call("query", {"sql": "DELETE FROM goods"}, fails="Only SELECT statements"),
            Call("insert_goods", {"goods": {"hat": 5}}, fails="failed unexpectedly"),
            Call("insert_goods", {"goods": {"cap": "5"}}, faulty='argument "goods'),
        ],
    ),
    Conversation(
        "database",
        "the schema is there to read",
        [
            ListNames("resources", ["schema://tables"]),
            ReadResource("schema://tables", '["goods","many"]', "application/json"),
            ReadResource(
                "schema://tables/goods",
                "CREATE TABLE goods (name TEXT UNIQUE, price INTEGER)",
                "application/sql",
            ),
            ReadResource("schema://tables/none"),
        ],
    ),
    Conversation(
        "database",
        "a prompt asks for a report",
        [
            ListNames("prompts", ["report"]),
            GetPrompt(
                "report",
                {"table": "goods", "rows": "3"},
                [
                    ("user", "Write a report about the first 3 rows of goods."),
                    ("assistant", "I look at the columns first."),
                ],
            ),
            GetPrompt("report", {"rows": "3"}),
            GetPrompt("report", {"table": "goods", "rows": "three"}),
            GetPrompt("none"),
        ],
    ),
)

REPOSITORY: Final = (
    Conversation(
        "repository",
        "changes become commits",
        [
            Call("status", value={"branch": "main", "added": [], "changed": [], "removed": []}),
            Call("edit", {"path": "a.txt", "text": "one"}, value=ABSENT, text="", blocks=[]),
            Call("edit", {"path": "b.txt", "text": "two"}),
            Call(
                "commit",
                {"message": "Begin"},
                value={
                    "id": ANY,
                    "message": "Begin",
                    "parent": None,
                    "files": {"a.txt": "one", "b.txt": "two"},
                },
                logs=[("info", ANY)],
            ),
            Call("commit", {"message": "Again"}, fails="Nothing has changed."),
            Call("edit", {"path": "a.txt", "text": "three"}),
            Call("edit", {"path": "b.txt"}),
            Call(
                "status",
                value={"branch": "main", "added": [], "changed": ["a.txt"], "removed": ["b.txt"]},
            ),
            Call(
                "diff",
                text="--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+three\n"
                "--- a/b.txt\n+++ b/b.txt\n@@ -1 +0,0 @@\n-two",
            ),
            Call("commit", {"message": "Go on"}),
            Call("log", value=["Go on", "Begin"], text='["Go on","Begin"]'),
            Call("log", {"count": 1}, value=["Go on"]),
        ],
    ),
    Conversation(
        "repository",
        "branches have files of their own",
        [
            Call("checkout", {"branch": "work"}, fails="There is no branch 'work'."),
            Call("checkout", {"branch": "work", "create": True}, text="on work"),
            Call("edit", {"path": "dir/c.txt", "text": "four"}),
            Call("commit", {"message": "Work"}),
            ReadResource("history://work/dir/c.txt", "four"),
            ReadResource("history://work/a.txt", "three"),
            ReadResource("history://main/dir/c.txt"),
            ReadResource("history://main/b.txt"),
            ReadResource("history://..%2Fcommits/a.txt"),
            Complete("resource", HISTORY, "branch", "", ["main", "work"]),
            Complete("resource", HISTORY, "branch", "w", ["work"]),
            Call("checkout", {"branch": "main"}, text="on main"),
            Call("diff", text="", value=ABSENT),
        ],
    ),
    Conversation(
        "repository",
        "several faults of one call are named together",
        [
            Call("checkout", {"branch": "No Such"}, faulty='argument "branch"'),
            Call("checkout", {"branch": "../x", "create": "yes"}, faulty='argument "create"'),
            Call("commit", {"message": ""}, faulty='argument "message"'),
            Call("log", {"count": 0}, faulty='argument "count"'),
        ],
    ),
)

FETCH: Final = (
    Conversation(
        "fetch",
        "a page is read as text",
        [
            ListNames("tools", ["fetch"]),
            Call(
                "fetch",
                {"url": "/"},
                text="# Fjords\nThere are many.",
                value=ABSENT,
                meta={"example.com/type": "text/html"},
            ),
            Call(
                "fetch",
                {"url": "/", "raw": True, "max_length": 4.0},
                text="<h1>\n[more from 4 of 62]",
            ),
            Call("fetch", {"url": "/long", "max_length": 5, "start": 298}, text="89"),
            Call(
                "fetch",
                {"url": "/long", "max_length": 5},
                text="01234\n[more from 5 of 300]",
            ),
            GetPrompt(
                "page", {"path": "/"}, [("user", "This is the page /:\n# Fjords\nThere are many.")]
            ),
        ],
    ),
    Conversation(
        "fetch",
        "a page that is not there or not allowed is a failed result",
        [
            Call("fetch", {"url": "/none"}, fails="/none answered with status 404."),
            Call("fetch", {"url": "/private"}, fails="does not want programs"),
            Call("fetch", {"url": "http://127.0.0.1:1/"}, fails="127.0.0.1:1 is not an allowed"),
            Call("fetch", {"url": "file:///etc/hostname"}, fails="is not an allowed host."),
            Call("fetch", {"url": "/", "max_length": 0}, faulty='argument "max_length"'),
        ],
    ),
)

NOTES: Final = (
    Conversation(
        "notes",
        "the first note is notified, then read",
        [
            ListNames("resources", []),
            Watch(
                [Call("add_note", {"text": "Milk"}, blocks=["resource_link text/plain"])],
                ["resources"],
                lists=["resources"],
            ),
            ListNames("resources", ["note://board/1"]),
            ReadResource("note://board/1", "Milk", "text/plain"),
        ],
    ),
    Conversation(
        "notes",
        "a note that changes is notified to its subscribers",
        [
            Call("add_note", {"text": "Bread"}),
            Watch(
                [
                    Call("change_note", {"uri": "note://board/2", "text": "Rye"}),
                    Call("change_note", {"uri": "note://board/1", "text": "Eggs"}, text="changed"),
                ],
                ["note://board/1"],
                uris=["note://board/1"],
            ),
            ReadResource("note://board/1", "Eggs"),
            Call("change_note", {"uri": "note://board/9", "text": ""}, fails="There is no note"),
        ],
    ),
    Conversation(
        "notes",
        "the user is asked before all notes are removed",
        [
            Call("clear_board", text="The notes stay.", asked=["Remove all 2 notes?"]),
            Call("remove_note", {"uri": "note://board/2"}, text="removed"),
            Watch(
                [Call("clear_board", text="All notes are gone.", asked=["Remove all 1 notes?"])],
                ["resources"],
                lists=["resources"],
            ),
            Call("clear_board", text="There are no notes."),
            ListNames("resources", []),
            ReadResource("note://board/1"),
        ],
        answers={"Remove all 2 notes?": "decline", "Remove all 1 notes?": {"value": True}},
    ),
)

CLAIM: Final = "Why do you return A-1?"
LARGE: Final = "Why do you return A-2?"
REFUNDS: Final = (
    Conversation(
        "refunds",
        "a small refund needs a claim and a summary",
        [
            Call(
                "refund",
                {"order": "A-1"},
                value={"case": 1, "order": "A-1", "amount": 30, "summary": "Broken on arrival."},
                asked=[CLAIM, "Sum up: broken, in pieces"],
            ),
            Call("payments", value=[["A-1", 30]], text='[["A-1",30]]'),
            Call("refund", {"order": "B-1"}, fails="There is no order 'B-1'."),
        ],
        answers={
            CLAIM: {"reason": "broken", "amount": 30, "comment": "in pieces"},
            "Sum up: broken, in pieces": "Broken on arrival.",
        },
    ),
    Conversation(
        "refunds",
        "a large refund needs a confirmation",
        [
            Call(
                "refund",
                {"order": "A-2"},
                fails="The supervisor did not confirm.",
                asked=[LARGE, "Sum up: late, no comment", "Pay 250 euros for A-2?"],
            ),
            Call("payments", value=[["A-1", 30]]),
        ],
        answers={
            LARGE: {"reason": "late", "amount": 900},
            "Sum up: late, no comment": "Too late.",
            "Pay 250 euros for A-2?": "decline",
        },
    ),
    Conversation(
        "refunds",
        "a confirmed refund is paid once",
        [
            Call(
                "refund",
                {"order": "A-2"},
                value={"case": 3, "order": "A-2", "amount": 250, "summary": "Late."},
                asked=[LARGE, "Sum up: late, no comment", "Pay 250 euros for A-2?"],
            ),
            Call("payments", value=[["A-1", 30], ["A-2", 250]]),
            Call("refund", {"order": "A-2"}, fails="A-2 is refunded already."),
        ],
        answers={
            LARGE: {"reason": "late", "amount": 900, "comment": ""},
            "Sum up: late, no comment": "Late.",
            "Pay 250 euros for A-2?": {},
        },
    ),
    Conversation(
        "refunds",
        "a customer who declines is paid nothing",
        [Call("refund", {"order": "A-1"}, fails="did not fill in the claim", asked=[CLAIM])],
        answers={CLAIM: "cancel"},
    ),
    Conversation(
        "refunds",
        "the user is sent to a page",
        [Call("pay_online", {"order": "A-1"}, text="Thank you.", asked=["Pay for A-1"])],
        answers={"Pay for A-1": "accept"},
        since="2025-11-25",
    ),
    Conversation(
        "refunds",
        "without a model the reason is the summary",
        [
            Call(
                "refund",
                {"order": "A-1"},
                value={"case": 1, "order": "A-1", "amount": 5, "summary": "other"},
                asked=[CLAIM],
            ),
        ],
        answers={CLAIM: {"reason": "other", "amount": 5}},
        without=frozenset(["sampling"]),
    ),
)

EVERYTHING: Final = (
    Conversation(
        "everything",
        "every kind of content arrives",
        [
            ListNames(
                "tools",
                [
                    "echo",
                    "add",
                    "weather",
                    "contents",
                    "long_operation",
                    "research",
                    "who_is_there",
                    "fail",
                ],
            ),
            Call("echo", {"message": "ö\n"}, text="Echo: ö\n", value=ABSENT),
            Call("add", {"a": 2, "b": 3.0}, text="5", value=5),
            Call(
                "weather",
                {"city": "Oslo", "unit": "kelvin"},
                text="294.65 degrees in Oslo",
                value={"city": "Oslo", "degrees": 294.65, "unit": "kelvin", "day": "2026-07-28"},
            ),
            Call(
                "contents",
                text="a text",
                value=ABSENT,
                blocks=[
                    "text",
                    "image image/png",
                    "audio audio/wav",
                    "resource text/csv",
                    "resource text/plain",
                    "resource_link",
                ],
            ),
        ],
    ),
    Conversation(
        "everything",
        "faults in arguments are named together",
        [
            Call("add", {"a": "2", "b": 1.5}, faulty='argument "b": expected an integer'),
            Call("add", {"a": 5.0, "b": None}, faulty='argument "b": expected an integer'),
            Call("add", {"a": 5.0}, faulty='"b"'),
            Call("weather", {"city": "Oslo", "day": "today"}, faulty='argument "day"'),
            Call("weather", {"city": "Oslo", "unit": "rankine"}, faulty='argument "unit"'),
        ],
    ),
    Conversation(
        "everything",
        "progress and logs come with the call",
        [
            Call(
                "long_operation",
                {"steps": 2},
                text="2 steps",
                progress=[(1, 2, "step 1"), (2, 2, "step 2")],
                logs=[("info", {"step": 1}), ("info", {"step": 2})],
            ),
        ],
    ),
    Conversation(
        "everything",
        "a tool fails in its own way",
        [
            Call("fail", {"how": "tool"}, fails="It did not work."),
            Call("fail", {"how": "request"}, refused=(-32602, "Not like this")),
            Call("fail", {"how": "other"}, fails="The tool 'fail' failed unexpectedly"),
        ],
    ),
    Conversation(
        "everything",
        "the folders of the client are asked for",
        [Call("who_is_there", value={"revision": ANY, "roots": ["file:///home/ada"]})],
    ),
    Conversation(
        "everything",
        "a client without folders is not asked",
        [Call("who_is_there", value={"revision": ANY, "roots": None})],
        without=frozenset(["roots"]),
    ),
    Conversation(
        "everything",
        "resources have text, bytes and parameters",
        [
            ListNames("resources", ["demo://text", "demo://picture"]),
            ListNames("templates", ["demo://numbers/{number}{?digits}"]),
            ReadResource("demo://text", "plain", "text/plain"),
            ReadResource("demo://picture", PNG, "image/png"),
            ReadResource("demo://numbers/7", '{"number":7}', "application/json"),
            ReadResource("demo://numbers/7?digits=1", '{"number":7.5}', "application/json"),
            ReadResource("demo://numbers/seven"),
        ],
    ),
    Conversation(
        "everything",
        "prompts have messages of both roles, and completions",
        [
            ListNames("prompts", ["plain", "travel"]),
            GetPrompt("plain", {}, [("user", "Hello.")]),
            GetPrompt(
                "travel",
                {"city": "Oslo"},
                [
                    ("user", "2 days in Oslo?"),
                    ("assistant", "Look at this."),
                    ("user", "image/png"),
                ],
            ),
            Complete("prompt", "travel", "city", "O", ["Oslo", "Odda"]),
            Complete("prompt", "travel", "days", "", ["1", "2"], known={"city": "Odda"}),
            Complete("prompt", "travel", "days", "", ["7"]),
        ],
    ),
    Conversation(
        "everything",
        "a long call asks, and may be a task",
        [
            Call(
                "research",
                {"topic": "moss"},
                text="moss: north",
                asked=["Which side of moss?"],
            ),
        ],
        answers={"Which side of moss?": {"value": "north"}},
    ),
    Conversation(
        "everything",
        "a call is a task that asks",
        [
            CallAsTask(
                "research",
                {"topic": "ferns"},
                text="ferns: all sides",
                asked=["Which side of ferns?"],
            ),
        ],
        answers={"Which side of ferns?": "decline"},
        tasks=True,
    ),
)

ADA: Final = {"name": "Ada", "kind": "person", "facts": ["wrote programs"]}
MEMORY: Final = (
    Conversation(
        "memory",
        "things and relations are remembered",
        [
            ReadResource("memory://graph", GRAPH, "application/json"),
            Call(
                "remember",
                {"things": [ADA, {"name": "London", "kind": "place"}]},
                value=["Ada", "London"],
            ),
            Watch(
                [
                    Call(
                        "remember",
                        {"things": [{**ADA, "facts": ["wrote programs", "rode"]}]},
                        value=[],
                    )
                ],
                ["memory://graph"],
                uris=["memory://graph"],
            ),
            Call(
                "relate",
                {"relation": {"from": "Ada", "verb": "lived in", "to": "London"}},
                text="Ada lived in London",
            ),
            Call("recall", {"words": "RODE"}, value=[{**ADA, "facts": ["wrote programs", "rode"]}]),
            Call(
                "recall",
                {"words": "o", "kind": "place"},
                value=[{"name": "London", "kind": "place", "facts": []}],
            ),
            Call(
                "forget",
                {"name": "London"},
                value={"name": "London", "kind": "place", "facts": []},
                is_union=True,
            ),
            Call("forget", {"name": "London"}, value=None, text="null", is_union=True),
        ],
    ),
    Conversation(
        "memory",
        "what is unknown or malformed is named",
        [
            Call(
                "relate",
                {"relation": {"from": "Ada", "verb": "met", "to": "Bo"}},
                fails="known of 'Bo'",
            ),
            Call("remember", {"things": [{"name": "", "kind": "person"}]}, faulty="things"),
            Call("remember", {"things": [{"name": "x", "kind": "cow"}]}, faulty="things"),
            Call(
                "relate",
                {"relation": {"source": "Ada", "verb": "met", "target": "Ada"}},
                faulty="relation",
            ),
        ],
    ),
)

CHATBOT: Final = (
    Conversation(
        "chatbot",
        "a question is answered with the tools of three servers",
        [
            Call("chat", {"question": "Note the price of skis."}, text="Noted: skis 300."),
            ReadResource(
                "chat://transcript",
                "user: Note the price of skis.\n"
                "tool: 1\n"
                'tool: {"columns":["price"],"rows":[[300]],"more":false}\n'
                "tool: wrote 8 characters to prices.txt\n"
                "tool: \n"
                "tool: skis 300\n"
                "assistant: Noted: skis 300.",
            ),
        ],
    ),
    Conversation(
        "chatbot",
        "a tool that fails or does not exist is told to the model",
        [
            Call(
                "chat",
                {"question": "What is outside?"},
                text="I cannot see: failed: ../../x is outside of the folder.",
            ),
            Call(
                "chat", {"question": "What is the weather?"}, text="There is no tool weather.now."
            ),
            Call("chat", {"question": "Count to ten."}, text="I could not find out."),
        ],
    ),
)

CONVERSATIONS: Final = (
    *FILES,
    *DATABASE,
    *REPOSITORY,
    *FETCH,
    *NOTES,
    *REFUNDS,
    *EVERYTHING,
    *MEMORY,
    *CHATBOT,
)
SERVERS: Final = tuple(dict.fromkeys(each.server for each in CONVERSATIONS))


def groups() -> dict[tuple[str, frozenset[str]], list[Conversation]]:
    """Return the conversations of each connection, by server and what its client lacks."""
    found: dict[tuple[str, frozenset[str]], list[Conversation]] = {}
    for each in CONVERSATIONS:
        found.setdefault((each.server, each.without), []).append(each)
    return found
