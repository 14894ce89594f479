"""No Host or Origin passes whose name is not on the list, however it is spelled.

The oracle reads a value as a browser does that was led to an attacker's name: whatever stands
where a URL has its host is the name, and only a whole allowed name is one.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trunkline import HttpSettings
from trunkline.transports.http.gate.admission import Admission
from trunkline.transports.http.request import HttpRequest

ALLOWED = ("localhost", "127.0.0.1", "[::1]", "mcp.example.org", "fixed.example.org")
GATE = Admission(
    HttpSettings(hosts=["mcp.example.org", "fixed.example.org:8443"]), [("127.0.0.1", 8000)]
)
# A gate that remembers nothing yet, so that a verdict does not depend on earlier ones.
FRESH = HttpSettings(hosts=["mcp.example.org", "fixed.example.org:8443"])

PARTS = st.one_of(
    st.sampled_from(ALLOWED),
    st.sampled_from([each.upper() for each in ALLOWED]),
    st.sampled_from(["evil", "evil.example", "127", "::1", "0", "xn--", "localhost.localdomain"]),
    st.sampled_from(
        [".", "..", ":", "@", "/", "\\", "#", "?", "[", "]", "%", "%2e", ",", ";", "-"]
    ),
    st.sampled_from([" ", "\t", "\r", "\n", "\x00", "\x0b", "\x7f", "\xa0", "\xad", "\xb5", "*"]),
    st.sampled_from([":80", ":8000", ":8443", ":0", ":65535", ":65536", ":-1", ":+80", ":0x50"]),
    st.text(max_size=3).filter(lambda text: all(each < "\u0100" for each in text)),
)
SPELLINGS = st.one_of(
    st.lists(PARTS, min_size=1, max_size=5).map("".join),
    st.tuples(st.sampled_from(ALLOWED), PARTS).map("".join),
    st.tuples(PARTS, st.sampled_from(ALLOWED)).map("".join),
)


def is_allowed(host: str) -> bool:
    """Return whether a Host is an allowed name, with a port or without, and nothing else."""
    names = "|".join(map(re.escape, ALLOWED[:4]))
    bracketed = re.match(r"\[([0-9a-f:.]*)\]", host.lower())
    if bracketed is not None and is_ipv6_loopback(bracketed[1]):
        host = f"[::1]{host[bracketed.end() :]}"
    found = re.fullmatch(rf"(?:{names})(?::([0-9]{{1,5}}))?", host.lower(), re.ASCII)
    if found is None:
        # Without a port it is one of the default ports, and not 8443.
        return re.fullmatch(r"fixed\.example\.org:0?8443", host.lower(), re.ASCII) is not None
    return found[1] is None or int(found[1]) <= 65_535


def is_ipv6_loopback(text: str) -> bool:
    try:
        return IPv6Address(text) == IPv6Address("::1")
    except ValueError:
        return False


def request(host: str, origin: str | None = None) -> HttpRequest:
    raw = None if origin is None else origin.encode("latin-1")
    known = (host.encode("latin-1"), raw)
    return HttpRequest("POST", "/mcp", "", "1.1", [], "127.0.0.1", False, *known)


def status(gate: Admission, host: str, origin: str | None = None) -> int | None:
    refusal = gate.check(request(host, origin))
    return None if refusal is None else refusal.status


@settings(max_examples=examples(1000))
@given(SPELLINGS)
@example("localhost:8000@evil.example")
@example("localhost.")
@example("evil.example\tlocalhost")
@example("[::1]evil.example")
@example("[0::1]:80")
@example("[127::1]")
@example("fixed.example.org")
def test_a_host_passes_if_and_only_if_its_whole_name_is_allowed(host: str) -> None:
    wanted = None if is_allowed(host) else 421
    assert status(GATE, host) == wanted
    assert status(Admission(FRESH, [("127.0.0.1", 8000)]), host) == wanted


@settings(max_examples=examples(1000))
@given(SPELLINGS, st.sampled_from(["http://", "https://", "HTTP://", "http:", "//", "", "ftp://"]))
@example("localhost@evil.example", "http://")
@example("null", "")
def test_an_origin_passes_if_and_only_if_its_whole_host_is_allowed(host: str, scheme: str) -> None:
    is_right = scheme.lower() in ("http://", "https://") and is_allowed(host)
    assert status(GATE, "localhost", f"{scheme}{host}") == (None if is_right else 403)


@settings(max_examples=examples(300))
@given(SPELLINGS, SPELLINGS)
def test_a_refused_host_stays_refused_whatever_passed_before(first: str, second: str) -> None:
    gate = Admission(FRESH, [("127.0.0.1", 8000)])
    status(gate, first)
    assert status(gate, second) == (None if is_allowed(second) else 421)
