"""A server in front of a REST API: a tracker of issues with a token.

    export ISSUES_URL=https://issues.example.org/api ISSUES_TOKEN=…
    trunkline serve examples/rest_api_server.py

Errors of the API become texts that a model can act on; the token goes to the API and nowhere else.
Handlers are plain functions, so each waits for the API on a thread of its own.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import msgspec
from msgspec import Meta, Struct

from trunkline import Context, Server, ToolError
from trunkline.mcp import ToolAnnotations

TIMEOUT_S = 10
MAX_ANSWER_BYTES = 1_000_000


class Issue(Struct):
    """An issue of the tracker; members that are not named here are dropped."""

    number: int
    title: str
    state: Literal["open", "closed"]
    body: str = ""


def call(method: str, path: str, body: object = None, **query: object) -> bytes:
    """Send a request to the API and return the body of its answer.

    Raises:
        ToolError: the API refused the request, or gave no answer.
    """
    url = os.environ.get("ISSUES_URL", "http://127.0.0.1:8900").rstrip("/") + path
    given = {name: str(value) for name, value in query.items() if value is not None}
    request = Request(f"{url}?{urlencode(given)}" if given else url, method=method)
    request.add_header("Accept", "application/json")
    if token := os.environ.get("ISSUES_TOKEN"):
        request.add_header("Authorization", f"Bearer {token}")
    if body is not None:
        request.add_header("Content-Type", "application/json")
        request.data = msgspec.json.encode(body)
    try:
        with urlopen(request, timeout=TIMEOUT_S) as response:
            answer: bytes = response.read(MAX_ANSWER_BYTES + 1)
    except HTTPError as error:
        raise ToolError(REFUSALS.get(error.code, f"The tracker answered {error.code}.")) from None
    except (URLError, TimeoutError) as error:
        if "ISSUES_URL" not in os.environ:
            raise ToolError("This server needs ISSUES_URL, the address of its tracker.") from error
        raise ToolError("The tracker cannot be reached; try again later.") from error
    if len(answer) > MAX_ANSWER_BYTES:
        raise ToolError("The answer of the tracker is too long; ask for less.")
    return answer


REFUSALS = {
    401: "The tracker does not accept the token of this server.",
    403: "The token of this server may not do that.",
    404: "There is no such issue.",
    422: "The tracker did not accept these values.",
    429: "The tracker is asked too often; wait a minute.",
}

app = Server("issues", version="1.0.0", instructions="Search before you open an issue.")
READS = ToolAnnotations(read_only_hint=True, open_world_hint=True)


@app.tool(annotations=READS)
def search_issues(
    text: str,
    state: Literal["open", "closed"] = "open",
    page: Annotated[int, Meta(ge=1, le=100)] = 1,
) -> list[Issue]:
    """Find issues by a text, 20 on a page."""
    found = call("GET", "/issues", q=text, state=state, page=page, per_page=20)
    return msgspec.json.decode(found, type=list[Issue])


@app.tool(annotations=READS)
def get_issue(number: int) -> Issue:
    """Return an issue with its text."""
    return msgspec.json.decode(call("GET", f"/issues/{number}"), type=Issue)


@app.tool(annotations=ToolAnnotations(destructive_hint=False, open_world_hint=True))
def open_issue(ctx: Context, title: Annotated[str, Meta(min_length=5)], body: str = "") -> Issue:
    """Open an issue."""
    made = msgspec.json.decode(call("POST", "/issues", {"title": title, "body": body}), type=Issue)
    ctx.info(f"issue {made.number} was opened")
    return made


@app.resource("issue://{number}", mime_type="application/json")
def issue(number: int) -> Issue:
    """An issue, as a resource that a user can attach."""
    return get_issue(number)


@app.resource("label://{name}", mime_type="application/json")
def label(name: str) -> Any:
    """What a label is for, as the tracker describes it."""
    return msgspec.json.decode(call("GET", f"/labels/{quote(name, safe='')}"))


if __name__ == "__main__":
    app.run()
