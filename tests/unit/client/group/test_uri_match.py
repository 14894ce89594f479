"""A URI is matched against templates of servers in bounded time."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from trunkline.client.group.uri_match import matches


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("note://{id}", "note://7"),
        ("note://{id}/meta", "note://7/meta"),
        ("file:///{+path}", "file:///a/b/c"),
        ("file://{/path*}", "file:///a/b"),
        ("x://q{?a,b}", "x://q?a=1"),
        ("x://q{?a,b}", "x://q"),
        ("x://{a}{b}", "x://ab"),
        ("x://{a}-{b}", "x://1-2-3"),
        ("x://plain", "x://plain"),
        ("{scheme}://x", "y://x"),
    ],
)
def test_uri_expanded_from_a_template_matches_it(template: str, uri: str) -> None:
    assert matches(template, uri)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("note://{id}", "note://7/meta"),
        ("note://{id}", "note://"),
        ("note://{id}", "other://7"),
        ("note://{id}/meta", "note://7/meta/x"),
        ("x://plain", "x://plainer"),
        ("x://{a}-{b}", "x://12"),
        ("", "x"),
        ("{" * 10, "x"),
    ],
)
def test_other_uris_do_not_match_the_template(template: str, uri: str) -> None:
    assert not matches(template, uri)


def test_a_hostile_template_takes_no_exponential_time() -> None:
    """Counted in calls and lines of Python, which do not depend on the machine."""
    steps = 0

    def count(*_: object) -> Any:
        nonlocal steps
        steps += 1
        return count

    uri = "x" * 2000
    before = sys.gettrace()
    sys.settrace(count)
    try:
        assert not matches("{a}" * 32 + "!", uri)
        assert not matches("{+a}" * 33, uri)
    finally:
        sys.settrace(before)
    assert steps < 32 * len(uri) * 10
