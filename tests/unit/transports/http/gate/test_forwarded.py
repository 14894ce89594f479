"""Reports of proxies: who is believed, and what a client can write into them."""

from __future__ import annotations

from tests.canaries import CANARY
from tests.cases import for_each
from tests.cpu_time import calibration_s, cpu_s
from trunkline.transports.http.gate import forwarded
from trunkline.transports.http.gate.forwarded import (
    Forwarding,
    TrustedProxies,
    parse_forwarded,
    parse_node,
)
from trunkline.transports.http.request import HttpRequest

PROXY = "10.0.0.1"
TRUSTED = ("10.0.0.0/8", "fd00::/8", "unix")


def request(client: str, *headers: tuple[str, str]) -> HttpRequest:
    raw = [(name.encode(), value.encode()) for name, value in headers]
    return HttpRequest("POST", "/mcp", "", "1.1", raw, client, False, b"localhost")


def read(*headers: tuple[str, str], client: str = PROXY) -> Forwarding | None:
    return TrustedProxies(TRUSTED).read(request(client, *headers))


def client(*headers: tuple[str, str]) -> str:
    found = read(*headers)
    assert found is not None
    return found.client


@for_each(
    ("text", "elements"),
    [
        ("", []),
        ("for=1.2.3.4", [{"for": "1.2.3.4"}]),
        ("For=1.2.3.4;Proto=HTTPS;by=x", [{"for": "1.2.3.4", "proto": "HTTPS", "by": "x"}]),
        ('for="[2001:db8::1]:80"', [{"for": "[2001:db8::1]:80"}]),
        ('for=a, for="b" , for=c', [{"for": "a"}, {"for": "b"}, {"for": "c"}]),
        ('for="a, for=b"', [{"for": "a, for=b"}]),
        ('for="a\\"b\\\\c"', [{"for": 'a"b\\c'}]),
        ("for=1.2.3.4:80;host=a.example:8443", [{"for": "1.2.3.4:80", "host": "a.example:8443"}]),
        ("for=[::1]:80", [{"for": "[::1]:80"}]),
        (" for=a ; host=b ,, ,for=c;", [{"for": "a", "host": "b"}, {"for": "c"}]),
        ('for=""', [{"for": ""}]),
    ],
)
def test_forwarded_is_read_as_its_grammar_says(text: str, elements: list[dict[str, str]]) -> None:
    assert parse_forwarded(text) == elements


@for_each(
    "text",
    [
        *("for", "for=", "=a", "for =a", "for= a", 'for="a', 'for=a"', 'for="a"b', "for=a b"),
        *("for=a;for=b", "for=a;FOR=b", "for=a/b", 'for="a\nb"', "for=a\x00", 'for="\\', "for=(a)"),
        *("f\xf6r=a", "for=\xf6"),
    ],
)
def test_a_malformed_forwarded_is_not_read_in_part(text: str) -> None:
    assert parse_forwarded(text) is None
    assert parse_forwarded(f"for=1.2.3.4, {text}") is None
    found = read(("forwarded", text), ("x-forwarded-host", "a.example"))
    assert found == Forwarding(PROXY, is_malformed=True)


@for_each(
    ("text", "node"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("1.2.3.4:56789", "1.2.3.4"),
        ("2001:DB8::1", "2001:db8::1"),
        ("[2001:db8:0::1]", "2001:db8::1"),
        ("[2001:db8::1]:80", "2001:db8::1"),
        ("[2001:db8::1]:_port", "2001:db8::1"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("[::ffff:1.2.3.4]:80", "1.2.3.4"),
        ("unknown", "unknown"),
        ("_gazonk", "_gazonk"),
        ("_gazonk:_9", "_gazonk"),
        ("", None),
        ("1.2.3", None),
        ("1.2.3.4.5", None),
        ("01.2.3.4", None),
        ("1.2.3.4:x", None),
        ("1.2.3.4 ", None),
        ("1.2.3.4\n", None),
        ("[1.2.3.4]", "1.2.3.4"),
        ("localhost", None),
        ("gazonk", None),
        ("_" + "a" * 64, None),
        ("fe80::1%eth0", None),
        ("[fe80::1%eth0]", None),
        ("\u0661.2.3.4", None),
    ],
)
def test_a_node_is_an_address_or_an_identifier(text: str, node: str | None) -> None:
    assert parse_node(text) == node


def test_reports_of_others_than_trusted_proxies_are_not_read() -> None:
    headers = (("x-forwarded-for", "1.2.3.4"), ("forwarded", "for=1.2.3.4;host=a.example"))
    for each in ("192.0.2.1", "11.0.0.1", "::1", "2001:db8::1", "127.0.0.1", "name"):
        assert read(*headers, client=each) is None
    assert TrustedProxies(["10.0.0.1"]).read(request("", *headers)) is None
    for each in ("10.0.0.1", "10.255.255.255", "::ffff:10.0.0.1", "fd00::1", ""):
        assert read(*headers, client=each) is not None
    # Sockets of both families report IPv4 in IPv6 form.
    assert read(client="::ffff:10.0.0.1") == Forwarding("10.0.0.1")


@for_each(
    ("listed", "found"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("6.6.6.6, 1.2.3.4", "1.2.3.4"),
        ("6.6.6.6, 1.2.3.4, 10.0.0.2, 10.0.0.3", "1.2.3.4"),
        ("10.0.0.9, 1.2.3.4, 10.0.0.2", "1.2.3.4"),
        ("1.2.3.4,fd00::2,::ffff:10.0.0.2", "1.2.3.4"),
        ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("6.6.6.6, garbage, 10.0.0.2", "10.0.0.2"),
        ("garbage", PROXY),
        ("1.2.3.4, unknown", "unknown"),
        ("1.2.3.4, _hidden, 10.0.0.2", "_hidden"),
        (" , ,", PROXY),
        ("", PROXY),
    ],
)
def test_the_client_is_the_first_from_the_right_that_is_not_a_proxy(
    listed: str, found: str
) -> None:
    assert client(("x-forwarded-for", listed)) == found
    lines = [("x-forwarded-for", each) for each in listed.split(",")]
    assert client(*lines) == found
    if "," not in (listed.strip(), listed[-1:]) and listed:
        quoted = ", ".join(f'for="{each.strip()}"' for each in listed.split(","))
        assert client(("forwarded", quoted)) == found


def test_two_lists_that_differ_name_the_proxy() -> None:
    one, other = ("forwarded", "for=1.2.3.4"), ("x-forwarded-for", "5.6.7.8")
    assert client(one, other) == client(other, one) == PROXY
    assert client(one, ("x-forwarded-for", "9.9.9.9, 1.2.3.4")) == "1.2.3.4"


def test_the_host_and_scheme_are_those_that_the_client_used() -> None:
    found = read(
        (
            "forwarded",
            "for=6.6.6.6;host=evil.example;proto=http, for=1.2.3.4;host=mcp.example;proto=https, "
            "for=10.0.0.2;host=inner.example;proto=http",
        )
    )
    assert found == Forwarding("1.2.3.4", ("mcp.example",), "https")
    found = read(("forwarded", "for=6.6.6.6;host=evil.example, for=1.2.3.4"))
    assert found == Forwarding("1.2.3.4")
    found = read(("forwarded", "for=1.2.3.4, for=10.0.0.2;host=inner.example"))
    assert found == Forwarding("1.2.3.4", ("inner.example",))


def test_every_x_forwarded_host_is_reported() -> None:
    found = read(("x-forwarded-host", "a.example, b.example"), ("x-forwarded-host", "c.example"))
    assert found == Forwarding(PROXY, ("a.example", "b.example", "c.example"))
    found = read(("x-forwarded-host", "a.example"), ("forwarded", "for=1.2.3.4;host=b.example"))
    assert found == Forwarding("1.2.3.4", ("a.example", "b.example"))


@for_each(
    ("listed", "scheme"),
    [("https", "https"), ("HTTPS", "https"), ("http", "http"), ("https, http", "http")],
)
def test_a_scheme_is_secure_if_each_report_says_so(listed: str, scheme: str) -> None:
    found = read(("x-forwarded-proto", listed))
    assert found == Forwarding(PROXY, scheme=scheme)
    found = read(("x-forwarded-proto", listed), ("forwarded", "proto=http"))
    assert found is not None
    assert found.scheme == "http"


def test_more_proxies_than_there_are_anywhere_are_not_read() -> None:
    hops = ["1.2.3.4", *(f"10.1.0.{each}" for each in range(100))]
    assert client(("x-forwarded-for", ", ".join(hops))) == hops[-forwarded.MAX_HOPS]
    found = read(("x-forwarded-host", ",".join(["a.example"] * (forwarded.MAX_HOPS + 1))))
    assert found is not None
    assert found.is_malformed
    found = read(("forwarded", "for=1.2.3.4," * 1000))
    assert found is not None
    assert found.is_malformed


def test_caches_of_trusted_proxies_are_bounded() -> None:
    proxies = TrustedProxies(TRUSTED)
    for each in range(3000):
        address = f"1.2.{each // 256}.{each % 256}"
        found = proxies.read(request(PROXY, ("x-forwarded-for", address)))
        assert found == Forwarding(address)
    proxies.read(request(PROXY, ("x-forwarded-for", "1.2.3.4" + " " * 60_000)))
    assert len(proxies._read) <= 1024
    assert len(proxies._verdicts) <= 1024
    assert max(len(str(key)) for key in proxies._read) < 1000


def test_hostile_reports_take_no_longer_than_their_length() -> None:
    texts = ['for="' + "\\" * 8000, "for=a;" * 1300, '"' * 8000, " " * 8000, "for=" + "[" * 8000]
    texts += [", " * 30_000, "_" * 60_000, "1." * 30_000, "::" * 30_000]

    def work() -> None:
        proxies = TrustedProxies(TRUSTED)
        for text in texts:
            for name in ("forwarded", "x-forwarded-for", "x-forwarded-host"):
                proxies.read(request(PROXY, (name, text)))

    assert cpu_s(lambda: [work() for _ in range(5)]) < 30 * calibration_s()


def test_a_repr_shows_no_secret() -> None:
    secret = f"Bearer {CANARY}{CANARY}"
    assert CANARY not in repr(Forwarding(secret, (secret,), secret))
    assert "1.2.3.4" in repr(Forwarding("1.2.3.4"))
