"""URI templates: filled in as RFC 6570 says, read back as we say, and hostile ones refused."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from trunkline.server.registry.uri_template import MAX_TEMPLATE_LENGTH, MAX_URI_LENGTH, UriTemplate

# The values of RFC 6570, section 3.2.
VALUES: dict[str, str | int | None] = {
    "dom": "example.com",
    "dub": "me/too",
    "hello": "Hello World!",
    "half": "50%",
    "var": "value",
    "who": "fred",
    "base": "http://example.com/home/",
    "path": "/foo/bar",
    "semi": ";",
    "v": "6",
    "x": "1024",
    "y": "768",
    "empty": "",
    "undef": None,
}

# Sections 1.2 and 3.2.2 to 3.2.9, all of levels 1 to 3.
EXAMPLES = [
    # Simple.
    ("{var}", "value"),
    ("{hello}", "Hello%20World%21"),
    ("{half}", "50%25"),
    ("{semi}", "%3B"),
    ("O{empty}X", "OX"),
    ("O{undef}X", "OX"),
    ("{x,y}", "1024,768"),
    ("map?{x,y}", "map?1024,768"),
    ("{x,hello,y}", "1024,Hello%20World%21,768"),
    ("?{x,empty}", "?1024,"),
    ("?{x,undef}", "?1024"),
    ("?{undef,y}", "?768"),
    ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
    # Reserved.
    ("{+var}", "value"),
    ("{+hello}", "Hello%20World!"),
    ("{+half}", "50%25"),
    ("{+base}index", "http://example.com/home/index"),
    ("O{+empty}X", "OX"),
    ("O{+undef}X", "OX"),
    ("{+path}/here", "/foo/bar/here"),
    ("here?ref={+path}", "here?ref=/foo/bar"),
    ("up{+path}{var}/here", "up/foo/barvalue/here"),
    ("{+x,hello,y}", "1024,Hello%20World!,768"),
    ("{+path,x}/here", "/foo/bar,1024/here"),
    # Fragment.
    ("{#var}", "#value"),
    ("{#hello}", "#Hello%20World!"),
    ("{#half}", "#50%25"),
    ("X{#var}", "X#value"),
    ("X{#hello}", "X#Hello%20World!"),
    ("foo{#empty}", "foo#"),
    ("foo{#undef}", "foo"),
    ("{#x,hello,y}", "#1024,Hello%20World!,768"),
    ("{#path,x}/here", "#/foo/bar,1024/here"),
    # Label.
    ("{.who}", ".fred"),
    ("{.who,who}", ".fred.fred"),
    ("{.half,who}", ".50%25.fred"),
    ("www{.dom}", "www.example.com"),
    ("X{.var}", "X.value"),
    ("X{.x,y}", "X.1024.768"),
    ("X{.empty}", "X."),
    ("X{.undef}", "X"),
    # Path.
    ("{/who}", "/fred"),
    ("{/who,who}", "/fred/fred"),
    ("{/half,who}", "/50%25/fred"),
    ("{/who,dub}", "/fred/me%2Ftoo"),
    ("{/var}", "/value"),
    ("{/var,empty}", "/value/"),
    ("{/var,undef}", "/value"),
    ("{/var,x}/here", "/value/1024/here"),
    # Parameters.
    ("{;who}", ";who=fred"),
    ("{;half}", ";half=50%25"),
    ("{;empty}", ";empty"),
    ("{;v,empty,who}", ";v=6;empty;who=fred"),
    ("{;v,bar,who}", ";v=6;who=fred"),
    ("{;x,y}", ";x=1024;y=768"),
    ("{;x,y,empty}", ";x=1024;y=768;empty"),
    ("{;x,y,undef}", ";x=1024;y=768"),
    # Query.
    ("{?who}", "?who=fred"),
    ("{?half}", "?half=50%25"),
    ("{?x,y}", "?x=1024&y=768"),
    ("{?x,y,empty}", "?x=1024&y=768&empty="),
    ("{?x,y,undef}", "?x=1024&y=768"),
    # Its continuation.
    ("{&who}", "&who=fred"),
    ("{&half}", "&half=50%25"),
    ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
    ("{&x,y,empty}", "&x=1024&y=768&empty="),
    ("{&x,y,undef}", "&x=1024&y=768"),
]
# Several values give the same URI, or the value holds what follows it.
NOT_READ_BACK = {
    "O{empty}X", "O{undef}X", "O{+empty}X", "O{+undef}X", "?{undef,y}",
    "up{+path}{var}/here",
}  # fmt: skip


@pytest.mark.parametrize(("template", "expected"), EXAMPLES)
def test_the_examples_of_the_rfc_are_filled_in_as_it_says(template: str, expected: str) -> None:
    made = UriTemplate(f"x:{template}", only_expand=True)
    assert made.expand(VALUES) == f"x:{expected}"


@pytest.mark.parametrize("template", [t for t, _ in EXAMPLES if t not in NOT_READ_BACK])
def test_the_examples_of_the_rfc_are_read_back(template: str) -> None:
    made = UriTemplate(f"x:{template}")
    given = {name: VALUES.get(name) for name in made.variables}
    found = made.match(made.expand(VALUES))
    assert found == {name: value for name, value in given.items() if value is not None}


# Filling in


def test_variables_are_named_once_in_order() -> None:
    assert UriTemplate("x:{b}/{a,b}{?c.d,%41}").variables == ("b", "a", "c.d", "%41")
    assert UriTemplate("x:plain").variables == ()


def test_integers_are_values_and_other_things_are_not() -> None:
    made = UriTemplate("x:{a}")
    assert made.expand({"a": 7}) == "x:7"
    others: list[Any] = [True, 1.5, ["a"], {"a": "b"}, b"a"]
    for value in others:
        with pytest.raises(TypeError, match="'a' is a text or an integer"):
            made.expand({"a": value})


def test_texts_of_any_language_are_encoded() -> None:
    assert UriTemplate("x:ü/{a}").expand({"a": "日本"}) == "x:%C3%BC/%E6%97%A5%E6%9C%AC"
    assert UriTemplate("x:%c3%bc/{+a}").expand({"a": "é/%2f"}) == "x:%c3%bc/%C3%A9/%2f"
    with pytest.raises(ValueError, match="surrogates"):
        UriTemplate("x:{a}").expand({"a": "\ud800"})


def test_expand_ignores_values_without_a_variable() -> None:
    assert UriTemplate("x:{a}").expand({"a": "1", "b": "2"}) == "x:1"


# Reading


@pytest.mark.parametrize(
    ("template", "uri", "expected"),
    [
        ("x:a", "x:a", {}),
        ("x:a", "x:ab", None),
        ("x:a", "x:", None),
        ("x:a", "X:a", None),
        ("users://{id}", "users://7", {"id": "7"}),
        ("users://{id}", "users://", None),
        ("users://{id}", "users://7/posts", None),
        ("users://{id}", "users://7?a=1", None),
        ("users://{id}", "users://7#a", None),
        ("users://{id}", "users://a@b.c,d:e", {"id": "a@b.c,d:e"}),
        ("users://{id}/posts", "users://7/posts", {"id": "7"}),
        ("users://{id}/posts", "users:///posts", None),
        ("users://{id}/posts", "users://7/8/posts", None),
        # As little as it can, but for the last.
        ("x:{a}-{b}", "x:1-2-3", {"a": "1", "b": "2-3"}),
        ("x:{a}.txt", "x:a.txt.txt", {"a": "a.txt"}),
        ("x:{a}b", "x:bb", {"a": "b"}),
        ("x:{a}b{c}", "x:bbb", {"a": "b", "c": "b"}),
        ("x:aa{b}aa", "x:aaa", None),
        ("x:{+a}/e/{b}", "x:1/2/e/3", {"a": "1/2", "b": "3"}),
        ("x:{+a}", "x:1/2?3#4", {"a": "1/2?3#4"}),
        ("x:{+a}{?q}", "x:1/2?q=3", {"a": "1/2", "q": "3"}),
        # What may be missing.
        ("x:a{/b}", "x:a", {}),
        ("x:a{/b}", "x:a/", {"b": ""}),
        ("x:a{/b,c}", "x:a/1", {"b": "1"}),
        ("x:a{/b,c}", "x:a/1/2/3", None),
        ("x:a{/b}{.c}{?d}{#e}", "x:a/1?d=2", {"b": "1", "d": "2"}),
        (
            "x:a{/b}{.c}{?d}{#e}",
            "x:a/1.2?d=3/4.5#6?7",
            {"b": "1", "c": "2", "d": "3/4.5", "e": "6?7"},
        ),
        ("x:a{/b}{?d}", "x:a?d=1/2", {"d": "1/2"}),
        ("x:a{/b}{?d}", "x:az?d=1", None),
        ("x:{/a,b}{/c}", "x:/1/2/3", {"a": "1", "b": "2", "c": "3"}),
        ("x:{/a}{/b}", "x:/1", {"a": "1"}),
        # Pairs.
        ("x:{?a,b}", "x:?b=2&a=1", {"a": "1", "b": "2"}),
        ("x:{?a,b}", "x:?b=2", {"b": "2"}),
        ("x:{?a}", "x:?a", {"a": ""}),
        ("x:{?a}", "x:?a=1=2", {"a": "1=2"}),
        ("x:{?a}", "x:?c=1", None),
        ("x:{?a}", "x:?", None),
        ("x:{?a}", "x:?a=1&a=2", None),
        ("x:{?a}", "x:?a=1&", None),
        ("x:{?a}", "x:?a=1#2", None),
        ("x:{?a,b}{&c}", "x:?a=1&c=3", {"a": "1", "c": "3"}),
        ("x:{?a}{&b}", "x:&b=2", {"b": "2"}),
        ("x:{;a,b}", "x:;b;a=1", {"a": "1", "b": ""}),
        ("x:{;a}{;b}", "x:;b=2", {"b": "2"}),
        ("x:{;a}{?b}", "x:?b=2", {"b": "2"}),
        # One variable, two places.
        ("x:{a}/{a}", "x:1/1", {"a": "1"}),
        ("x:{a}/{a}", "x:1/2", None),
        # Encoding.
        ("x:{a}", "x:a%20b", {"a": "a b"}),
        ("x:{a}", "x:a b", {"a": "a b"}),
        ("x:{a}", "x:100%", {"a": "100%"}),
        ("x:{a}", "x:%zz", {"a": "%zz"}),
        ("x:{a}", "x:a+b", {"a": "a+b"}),
        ("x:{a}", "x:%2525", {"a": "%25"}),
        ("x:{a}", "x:%E6%97%A5本", {"a": "日本"}),
        ("x:{a}", "x:%ff", None),
        ("x:{a}", "x:%C3", None),
        ("x:{a}", "x:\ud800", None),
        ("x:{a}", "x:%ED%A0%80", None),
        ("x:ü{a}", "x:ü1", {"a": "1"}),
        ("x:ü{a}", "x:%c3%bc1", {"a": "1"}),
        ("x:%c3%bc{a}", "x:ü1", {"a": "1"}),
        # Split first, decoded after.
        ("x:{a}/{b}", "x:1%2F2/3", {"a": "1/2", "b": "3"}),
        ("x:{a}", "x:..%2F..%2Fetc", {"a": "../../etc"}),
        ("x:{a}-{b}", "x:1%2D2-3", {"a": "1-2", "b": "3"}),
        ("x:{?a,b}", "x:?a=1%26b%3D2", {"a": "1&b=2"}),
        ("x:{a}", "x:%00", {"a": "\0"}),
    ],
)
def test_a_uri_is_read_as_the_rules_say(
    template: str, uri: str, expected: dict[str, str] | None
) -> None:
    assert UriTemplate(template).match(uri) == expected


def test_a_template_that_is_only_filled_in_reads_nothing() -> None:
    made = UriTemplate("x:{a}{b}", only_expand=True)
    assert made.expand({"a": "1", "b": "2"}) == "x:12"
    for uri in ("x:12", "", "\0", "x:"):
        assert made.match(uri) is None


def test_a_template_compares_and_prints_by_its_text() -> None:
    made = UriTemplate("x:{a}")
    assert made == UriTemplate("x:{a}")
    assert made != UriTemplate("x:{b}")
    assert made != "x:{a}"
    assert len({made, UriTemplate("x:{a}")}) == 1
    assert str(made) == made.text == "x:{a}"
    assert repr(made) == "UriTemplate('x:{a}')"


# What is no template


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("", "scheme"),
        ("{a}", "scheme"),
        ("{a}:b", "scheme"),
        ("/a/{b}", "scheme"),
        ("1x:{a}", "scheme"),
        ("x{a}:", "scheme"),
        (":a", "scheme"),
        ("x:{", "every '{' needs its '}'"),
        ("x:{a", "every '{' needs its '}'"),
        ("x:}", "every '}' needs its '{'"),
        ("x:{a}}", "every '}' needs its '{'"),
        ("x:{{a}}", "names are made of"),
        ("x:{a{b}c}", "names are made of"),
        ("x:{}", "names are made of"),
        ("x:{+}", "names are made of"),
        ("x:{,a}", "the RFC reserves"),
        ("x:{a,}", "names are made of"),
        ("x:{a,,b}", "names are made of"),
        ("x:{a b}", "names are made of"),
        ("x:{a-b}", "names are made of"),
        ("x:{ü}", "names are made of"),
        ("x:{.a..b}", "names are made of"),
        ("x:{%zz}", "names are made of"),
        ("x:{??a}", "names are made of"),
        ("x:{=a}", "the RFC reserves"),
        ("x:{|a}", "the RFC reserves"),
        ("x:{!a}", "the RFC reserves"),
        ("x:{@a}", "the RFC reserves"),
        ("x:{a*}", "modifiers"),
        ("x:{/a*}", "modifiers"),
        ("x:{a:3}", "modifiers"),
        ("x:{a}{b}", "{a} and {b} cannot be separated"),
        ("x:{/a}{+b}", "cannot be separated"),
        ("x:a b", "' ' has to be percent-encoded"),
        ("x:a\n", "has to be percent-encoded"),
        ("x:\0", "has to be percent-encoded"),
        ('x:"', "has to be percent-encoded"),
        ("x:<a>", "has to be percent-encoded"),
        ("x:%", "'%' has to be percent-encoded"),
        ("x:%4", "'%' has to be percent-encoded"),
        ("x:\ud800", "has to be percent-encoded"),
        ("x:" + "a" * MAX_TEMPLATE_LENGTH, "up to 4096 characters"),
        ("x:" + "{" * 4000, "every '{' needs its '}'"),
        ("x:" + "{a" * 1000 + "}" * 1000, "names are made of"),
    ],
)
def test_malformed_template_is_refused_with_a_reason(template: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)) as caught:
        UriTemplate(template)
    # However long the template, nobody wants to read all of it.
    assert len(str(caught.value)) < 400


# Hostile readers' input


def test_too_long_uri_matches_no_template() -> None:
    made = UriTemplate("x:{+a}")
    assert made.match("x:" + "a" * (MAX_URI_LENGTH - 2)) is not None
    assert made.match("x:" + "a" * (MAX_URI_LENGTH - 1)) is None
    assert made.match("x:" + "a" * 100_000) is None


def steps(made: UriTemplate, uri: str) -> int:
    """Return how many lines are run, and functions called, to read a URI."""
    count = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        made.match(uri)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    ("template", "unit", "end"),
    [
        ("x:{+a}b{+c}b{+d}b{+e}!", "b", ""),
        ("x:" + "{a}a" * 200, "a", "b"),
        ("x:" + "{+a}aaab" * 100, "a", ""),
        ("x:{/a}{/b}{/c}{.d}{;e}{?f}{&g}{#h}", "/", ""),
        ("x:{/a}{/b}{/c}{.d}{;e}{?f}{&g}{#h}", "/.;?&#", ""),
        ("x:{?" + ",".join(f"n{n}" for n in range(500)) + "}", "&n1=1", ""),
        ("x:" + "".join(f"{{/v{n}}}" for n in range(400)), "/1", ""),
        ("x:{a,b,c}", ",", ""),
        ("x:{a}", "%41", ""),
        ("x:{a}", "ü", ""),
        ("x:{a}", "%", ""),
    ],
)
def test_reading_takes_no_more_than_steps_for_each_character(
    template: str, unit: str, end: str
) -> None:
    made = UriTemplate(template)

    def read(length: int) -> int:
        return steps(made, "x:" + unit * (length // len(unit)) + end)

    once, twice = read(3000), read(6000)
    # What does not grow with the URI grows with the template.
    assert twice <= 2 * once + 50
    assert twice <= 40 * (6000 + len(template))
