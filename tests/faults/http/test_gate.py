"""The gate of every route: Host, Origin, method, path, Content-Type and Accept."""

from __future__ import annotations

import json

import pytest

from tests.faults.http.serving import (
    Response,
    Served,
    Session,
    Wire,
    call,
    notification,
    serving,
    single,
    single_headers,
    text_of,
)
from tests.faults.http.statements import bad, good
from tests.rigs.http_requests import Headers
from tests.rigs.messages import META, PER_REQUEST
from trunkline import HttpSettings, Server
from trunkline.transports.http.gate.admission import Admission

ROUTES = ("/mcp", "/mcp/", "/sse", "/messages", "/messages?session_id=x", "/", "/nothing")
METHODS = ("POST", "GET", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH", "TRACE")
HEALTH = ("/healthz", "/readyz")

PING = call("ping")


@pytest.fixture(scope="module")
def every_route() -> Served:
    with serving(http=HttpSettings(old_sse=True)) as found:
        yield found  # type: ignore[misc]  # a fixture


def knock(served: Served, method: str, target: str, headers: Headers = ()) -> Response:
    """Send a request that would be served, but for what the headers say."""
    with served.connect() as wire:
        if method == "POST":
            message = call("server/discover", _meta=META)
            given = [*single_headers("server/discover"), *headers]
            return wire.ask(wire.post(message, given, target=target))
        return wire.ask(wire.head(method, target, headers), is_head=method == "HEAD")


# -- Host ------------------------------------------------------------------------------------

# A page at one of these names has made it resolve to 127.0.0.1.
FOREIGN_HOSTS = (
    "evil.example",
    "evil.example:80",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evil.example#127.0.0.1",
    "evil.example@127.0.0.1",
    "127.0.0.1@evil.example",
    "127.0.0.1:80@evil.example",
    "127.0.0.1, evil.example",
    "127.0.0.1 evil.example",
    "127.0.0.1\\evil.example",
    "127.0.0.1/evil.example",
    "127.0.0.1:80:80",
    "127.0.0.1:x",
    "127.0.0.1:99999",
    "127.0.0.1.",
    "localhost.",
    "0.0.0.0",
    "[::]",
    "[::1",
    "[::1]evil.example",
    "2130706433",
    "0x7f000001",
    "127.1",
    "017700000001",
    "[::ffff:127.0.0.1]",
    "LOCALHOST\xb7",
    "%6cocalhost",
    "",
)


@bad("SEC-01")
@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_foreign_host_is_refused_on_every_route_and_method(
    every_route: Served, host: str
) -> None:
    for target in ROUTES:
        for method in METHODS:
            answer = knock(every_route, method, target, [("Host", host)])
            assert answer.status == 421, (method, target, answer)
            assert answer.header("mcp-session-id") is None
            assert b"result" not in answer.body


@good("SEC-01")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "LocalHost:65535", "[::1]:8000"])
def test_a_loopback_host_is_served_with_any_port(every_route: Served, host: str) -> None:
    assert knock(every_route, "POST", "/mcp", [("Host", host)]).status == 200


def test_a_request_without_host_or_with_two_is_refused(served: Served) -> None:
    with served.connect() as wire:
        data = single(wire, "echo", text="without host")
        line, _, rest = data.partition(b"\r\n")
        bare = line + b"\r\n" + rest.partition(b"\r\n")[2]
        assert b"Host" not in bare
        assert wire.ask(bare).status == 400
    for second in ("evil.example", "127.0.0.1"):
        hosts = [("Host", "127.0.0.1"), ("Host", second)]
        assert knock(served, "POST", "/mcp", hosts).status == 400
        assert knock(served, "POST", "/mcp", hosts[::-1]).status == 400
    assert served.on_loop(lambda: "without host" not in served.journal.begun)


def test_a_forwarded_host_is_not_believed_without_trusted_proxies(served: Served) -> None:
    for name in ("X-Forwarded-Host", "X-Host", "Forwarded", "X-Original-Host", ":authority"):
        value = "host=127.0.0.1" if name == "Forwarded" else "127.0.0.1"
        answer = knock(served, "POST", "/mcp", [("Host", "evil.example"), (name, value)])
        assert answer.status in (400, 421), name  # the last name is not a name at all


@bad("SEC-03")
@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "0", "[::ffff:0.0.0.0]", "192.0.2.1"])
def test_an_address_that_others_reach_needs_names(host: str) -> None:
    app = Server("exposed")
    with pytest.raises(ValueError, match="hosts") as caught:
        app.listen(f"http://{host}:0/mcp")
    assert "--allowed-host" in str(caught.value)


@good("SEC-03")
def test_an_address_that_others_reach_is_used_with_names() -> None:
    settings = HttpSettings(hosts=["mcp.example.org"])
    assert Admission(settings, [("0.0.0.0", 80)]) is not None
    assert Server("exposed").listen("http://0.0.0.0:0/mcp", http=settings) is not None


# -- Origin ----------------------------------------------------------------------------------

FOREIGN_ORIGINS = (
    "http://evil.example",
    "https://evil.example",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "http://evil.example:80",
    "http://127.0.0.1@evil.example",
    "http://127.0.0.1/",
    "http://127.0.0.1 http://evil.example",
    "http://127.0.0.1, http://evil.example",
    "null",
    "NULL",
    "*",
    "",
    "file://",
    "data:",
    "chrome-extension://127.0.0.1",
    "127.0.0.1",
    "//127.0.0.1",
    "http:127.0.0.1",
    "http:/127.0.0.1",
)


@bad("SEC-01", "SEC-02")
@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_a_foreign_origin_is_403_on_every_route_and_method(
    every_route: Served, origin: str
) -> None:
    for target in ROUTES:
        for method in METHODS:
            answer = knock(every_route, method, target, [("Origin", origin)])
            assert answer.status == 403, (method, target, answer)
            assert not any(name.startswith("access-control") for name, _ in answer.headers)
            if method != "HEAD":
                assert "id" not in answer.json


@good("SEC-01", "SEC-02")
@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:1"])
def test_the_origin_of_an_allowed_host_is_served(every_route: Served, origin: str) -> None:
    answer = knock(every_route, "POST", "/mcp", [("Origin", origin)])
    assert answer.status == 200
    assert answer.header("access-control-allow-origin") is None  # CORS is off


def test_two_origins_are_refused_even_if_both_are_allowed(served: Served) -> None:
    origins = [("Origin", "http://localhost"), ("Origin", "http://localhost")]
    assert knock(served, "POST", "/mcp", origins).status == 400


def test_nothing_is_served_before_the_gate(served: Served) -> None:
    """The body of a refused request is not parsed, whatever it is."""
    for name, value in (("Host", "evil.example"), ("Origin", "http://evil.example")):
        with served.connect() as wire:
            data = single(wire, "echo", headers=[(name, value)], text="behind the gate")
            assert wire.ask(data).status in (403, 421)
            assert wire.is_closed  # the body was not read
    assert served.on_loop(lambda: "behind the gate" not in served.journal.begun)


# -- CORS ------------------------------------------------------------------------------------


def test_cors_is_exact() -> None:
    page = "https://app.example.org"
    with serving(http=HttpSettings(cors=[page])) as served:
        answer = knock(served, "POST", "/mcp", [("Origin", page)])
        assert answer.header("access-control-allow-origin") == page
        assert "Mcp-Session-Id" in (answer.header("access-control-expose-headers") or "")
        assert answer.header("access-control-allow-credentials") is None
        asked = [("Access-Control-Request-Method", "POST")]
        preflight = knock(served, "OPTIONS", "/mcp", [("Origin", page), *asked])
        assert preflight.status == 204
        for other in ("https://app.example.org.evil.example", "https://APP.example.org:444"):
            refused = knock(served, "OPTIONS", "/mcp", [("Origin", other), *asked])
            assert refused.status == 403
            assert refused.header("access-control-allow-origin") is None
        # What a preflight asks for is not echoed, but for names of parameters.
        evil = "X-Evil, Mcp-Param-A\tB, Mcp-Param-Ok, Mcp-Param-\xe9"
        asked.append(("Access-Control-Request-Headers", evil))
        preflight = knock(served, "OPTIONS", "/mcp", [("Origin", page), *asked])
        allowed = preflight.header("access-control-allow-headers") or ""
        assert "Mcp-Param-Ok" in allowed
        assert not any(each in allowed for each in ("X-Evil", "Param-A", "\xe9"))
        # A refusal can be read by the page too.
        refused = knock(served, "PUT", "/mcp", [("Origin", page)])
        assert (refused.status, refused.header("access-control-allow-origin")) == (405, page)


# -- health ----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", HEALTH)
def test_health_checks_answer_any_host_and_reveal_nothing(every_route: Served, target: str) -> None:
    with_host = {
        knock(every_route, "GET", target, [("Host", host), *extra]).timeless
        for host in ("127.0.0.1", "evil.example", "10.0.0.7:8000")
        for extra in ([], [("Origin", "http://evil.example")], [("Mcp-Session-Id", "x")])
    }
    assert len(with_host) == 1
    text = with_host.pop().decode().lower()
    assert text.endswith("ok\n")
    for word in ("served", "trunkline", "python", "mcp", "version", "session", "server"):
        assert word not in text
    head = knock(every_route, "HEAD", target)
    assert (head.status, head.body, head.header("content-length")) == (200, b"", "3")
    for method in ("POST", "DELETE", "OPTIONS", "PUT", "TRACE"):
        answer = knock(every_route, method, target)
        assert (answer.status, answer.header("allow")) == (405, "GET, HEAD")


def test_no_answer_names_the_software(served: Served) -> None:
    for method, target in (("GET", "/"), ("GET", "/mcp"), ("PUT", "/mcp"), ("GET", "/%00")):
        answer = knock(served, method, target)
        assert answer.header("server") is None
        assert b"trunkline" not in answer.timeless.lower()


# -- methods and targets ---------------------------------------------------------------------


@good("BP-080")
def test_one_path_takes_post_get_and_delete(served: Served) -> None:
    session = Session(served)
    assert text_of(session.call("echo", text="posted").json) == "posted"
    with served.connect() as wire:
        answer = wire.ask(wire.head("DELETE", "/mcp", session.headers))
        assert (answer.status, answer.body) == (204, b"")
    session = Session(served)
    with served.connect() as wire:
        wire.send(session.get(wire))
        answer = wire.start()
        assert (answer.status, answer.header("content-type")) == (200, "text/event-stream")


@bad("BP-080")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND"])
def test_other_methods_are_405_and_the_connection_goes_on(served: Served, method: str) -> None:
    with served.connect() as wire:
        headers = [("X-Secret", "canary-trace")]
        answer = wire.ask(wire.head(method, "/mcp", headers), is_head=method == "HEAD")
        assert (answer.status, answer.header("allow")) == (405, "POST, GET, DELETE")
        assert b"canary" not in answer.head + answer.body
        assert text_of(wire.ask(single(wire, "echo", text="after")).json) == "after"


@pytest.mark.parametrize(
    "target",
    [
        "/%6dcp",
        "/mcp%2f",
        "/mcp%00",
        "/mcp%0d%0aX:y",
        "/MCP",
        "//mcp",
        "/./mcp",
        "/x/../mcp",
        "/mcp/..",
        "/mcp//",
        "/mcp/x",
        "/mcp;x=y",
        "/mcp%3fx",
        "/mcp#x",
        "/healthz/../mcp",
        "/healthz/%2e%2e/mcp",
        "/healthz%2f..%2fmcp",
        "/%2fmcp",
        "/\\mcp",
        "/metrics",
        "/.well-known/oauth-protected-resource",
    ],
)
def test_a_path_is_compared_as_it_was_sent(served: Served, target: str) -> None:
    """A second spelling of a path is a way around the rules of a proxy."""
    assert knock(served, "POST", target).status == 404


@pytest.mark.parametrize("target", ["/mcp", "/mcp/", "/mcp?a=b", "/mcp?", "/mcp/?%00"])
def test_a_query_is_not_a_part_of_the_path(served: Served, target: str) -> None:
    assert knock(served, "POST", target).status == 200


def test_a_target_in_absolute_form_needs_the_same_authority_as_host(served: Served) -> None:
    here = f"127.0.0.1:{served.port}"
    for target in (f"http://{here}/mcp", f"HTTP://{here}/mcp", f"https://{here}/mcp?x"):
        assert knock(served, "POST", target, [("Host", here)]).status == 200, target
    for target in (
        "http://evil.example/mcp",
        "http://localhost/mcp",
        f"http://user@{here}/mcp",
        f"http://{here}@evil.example/mcp",
        f"http://{here}.evil.example/mcp",
        f"http://{here}:80/mcp",
        f"ftp://{here}/mcp",
        f"http:{here}/mcp",
        "http:///mcp",
    ):
        answer = knock(served, "POST", target, [("Host", here)])
        assert answer.status == 400, target
    # Both are foreign.
    for target in ("http://evil.example/mcp", "http://evil.example/healthz/../mcp"):
        answer = knock(served, "POST", target, [("Host", "evil.example")])
        assert answer.status == 421, target


@pytest.mark.parametrize("target", ["*", "127.0.0.1:80", "mcp", "?", "..", "%2fmcp"])
def test_a_target_that_is_not_a_path_is_400(served: Served, target: str) -> None:
    with served.connect() as wire:
        assert wire.ask(wire.head("OPTIONS", target)).status == 400


# -- Content-Type ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",  # the first four are sent by forms of any page, without preflight
        "text/plain; application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=application/json",
        "application/json, text/plain",
        "text/plain, application/json",
        "application/jsonx",
        "application/json+x",
        "application/vnd.api+json",
        "application/json text/plain",
        "*/*",
        "application/*",
    ],
)
def test_a_body_of_another_type_is_415_and_not_served(served: Served, kind: str | None) -> None:
    key = f"typed {kind}"
    with served.connect() as wire:
        if kind is None:
            data = single(wire, "echo", text=key).replace(b"Content-Type", b"X-Content-Type")
        else:
            data = single(wire, "echo", headers=[("Content-Type", kind)], text=key)
        answer = wire.ask(data)
        assert (answer.status, answer.json["error"]["code"]) == (415, -32600)
    assert served.on_loop(lambda: key not in served.journal.begun)


@pytest.mark.parametrize(
    "kind",
    [
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/json;charset=UTF-8; x=y",
        "application/json ;",
        'application/json; charset="utf-16"',
        "application/json; charset=iso-8859-1",
    ],
)
def test_json_is_read_as_utf_8_whatever_charset_it_names(served: Served, kind: str) -> None:
    """RFC 8259 has no charset: JSON is UTF-8, and what is not is not JSON."""
    with served.connect() as wire:
        data = single(wire, "echo", headers=[("Content-Type", kind)], text="é")
        assert text_of(wire.ask(data).json) == "é"
        message = call("tools/call", name="echo", arguments={"text": "é"}, _meta=META)
        text = json.dumps(message, ensure_ascii=False)
        headers = [*single_headers("tools/call", "echo"), ("Content-Type", kind)]
        assert text_of(wire.ask(wire.post(text.encode(), headers)).json) == "é"
        for wrong in ("latin-1", "utf-16", "utf-32", "utf-8-sig"):
            answer = wire.ask(wire.post(text.encode(wrong), headers))
            assert answer.status == 400, wrong
            assert answer.json["error"]["code"] == -32700


def test_a_compressed_body_is_not_served(served: Served) -> None:
    import gzip

    with served.connect() as wire:
        headers = [*single_headers("server/discover"), ("Content-Encoding", "gzip")]
        body = gzip.compress(json.dumps(call("server/discover", _meta=META)).encode())
        answer = wire.ask(wire.post(body, headers))
        assert answer.status in (400, 415)


# -- Accept ----------------------------------------------------------------------------------

JSON, STREAM = "application/json", "text/event-stream"


@good("BP-081", "BP-083", "BP-111")
@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (f"{JSON}, {STREAM}", JSON),
        (None, JSON),
        ("*/*", JSON),
        (JSON, JSON),
        ("application/*", JSON),
        (STREAM, STREAM),
        ("text/*", STREAM),
        (f"{STREAM};q=1, {JSON};q=0", STREAM),
        (f"{STREAM};q=0, {JSON}", JSON),
        (f"{JSON};q=0.001", JSON),
        (f"{JSON};q=0, */*", STREAM),
        (f"{STREAM};q=0, */*", JSON),
        (f"{JSON};q=0.0, application/*;q=0.5, {STREAM}", STREAM),
        (f" {JSON} ; q=0.5 , {STREAM} ; q=0.9", JSON),
        (f"{JSON.upper()}", JSON),
        (f"{JSON}; charset=utf-8", JSON),
        (f"text/html, {JSON}", JSON),
    ],
)
def test_the_answer_has_a_type_that_is_accepted(
    served: Served, accept: str | None, kind: str
) -> None:
    session = Session(served)
    with served.connect() as wire:
        for data in (
            single(wire, "echo", text="x", headers=[("Accept", accept or "")]),
            session.post(
                wire,
                call("tools/call", name="echo", arguments={"text": "x"}),
                [("Accept", accept or "")],
            ),
        ):
            if accept is None:
                data = data.replace(b"Accept: \r\n", b"")
            answer = wire.ask(data)
            assert (answer.status, answer.header("content-type")) == (200, kind)
            body = answer.body if kind == JSON else answer.body.removeprefix(b"data: ")
            assert text_of(json.loads(body)) == "x"


@bad("BP-081", "BP-083", "BP-111")
@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "image/*",
        "",
        f"{JSON};q=0, {STREAM};q=0",
        f"{JSON};q=0.000, {STREAM}; q=0.",
        "*/*;q=0",
        "application/jsonx",
        "application/json+x",
    ],
)
def test_an_accept_that_allows_neither_type_is_406_and_not_served(
    served: Served, accept: str
) -> None:
    key = f"accept {accept}"
    with served.connect() as wire:
        answer = wire.ask(single(wire, "echo", headers=[("Accept", accept)], text=key))
        assert answer.status == 406
    assert served.on_loop(lambda: key not in served.journal.begun)


def test_accept_in_several_headers_is_one_list(served: Served) -> None:
    with served.connect() as wire:
        accepts = [("Accept", "text/html"), ("Accept", STREAM)]
        answer = wire.ask(single(wire, "echo", headers=accepts, text="x"))
        assert answer.header("content-type") == STREAM


# -- Expect ----------------------------------------------------------------------------------


def parts(wire: Wire, headers: Headers) -> tuple[bytes, bytes]:
    head, _, body = single(wire, "echo", headers=headers, text="expected").partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", body


def test_a_client_that_expects_100_continue_gets_it(served: Served) -> None:
    with served.connect() as wire:
        head, body = parts(wire, [("Expect", "100-Continue")])
        for _ in range(2):
            wire.send(head)
            assert wire.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue"
            wire.send(body)
            assert text_of(wire.response().json) == "expected"


def test_a_refused_client_gets_its_answer_in_place_of_100_continue(served: Served) -> None:
    for name, value, status in (
        ("Host", "evil.example", b"421"),
        ("Origin", "null", b"403"),
        ("Content-Type", "text/plain", b"415"),
        ("Accept", "text/html", b"406"),
    ):
        with served.connect() as wire:
            wire.send(parts(wire, [("Expect", "100-continue"), (name, value)])[0])
            assert wire.until(b"\r\n").startswith(b"HTTP/1.1 " + status)
            assert b"100" not in wire.rest()


def test_an_unknown_expectation_is_417(served: Served) -> None:
    with served.connect() as wire:
        wire.send(parts(wire, [("Expect", "200-ok")])[0])
        assert wire.response().status == 417
        assert wire.is_closed


def test_100_continue_is_not_sent_while_another_response_is_due(served: Served) -> None:
    key = "before the expectation"
    with served.connect() as wire:
        head, body = parts(wire, [("Expect", "100-continue")])
        wire.send(single(wire, "held", key=key) + head)
        served.until(lambda: key in served.journal.begun)
        served.open_gate(key)
        assert wire.until(b"\r\n") == b"HTTP/1.1 200 OK"
        wire.until(b"}}")
        wire.send(body)
        while b'"expected"' not in wire.received:
            wire._more()


@bad("BP-110")
def test_a_batch_or_a_reply_is_not_a_single_request(served: Served) -> None:
    with served.connect() as wire:
        batch = [call("server/discover", _meta=META), notification("x")]
        reply = {"jsonrpc": "2.0", "id": 1, "result": {}}
        for body in (batch, [], reply, {"jsonrpc": "2.0", "id": 1, "error": {}}):
            headers = [("MCP-Protocol-Version", PER_REQUEST), ("Mcp-Method", "server/discover")]
            answer = wire.ask(wire.post(body, headers))
            assert answer.status == 400, body
