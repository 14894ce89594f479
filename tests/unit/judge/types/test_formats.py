from __future__ import annotations

import pytest

from trunkline.judge.types.formats import FORMATS, is_traceparent

GOOD = {
    "uri": ["file:///a", "https://example.com/?q=%41#x", "urn:isbn:1", "data:,x", "a:", "http://[::1]/"],
    "uri-template": ["", "file:///{path}", "/{+a,b*}{?c:3}{#d}", "é{x.y}", "%41"],
    "byte": ["", "aGk=", "AAAA", "+/+/"],
    "date-time": ["2026-01-31T23:59:60Z", "2026-01-31T00:00:00.123+02:00"],
    "date": ["2026-02-28"],
    "email": ["a@b.example"],
}  # fmt: skip
BAD = {
    "uri": ["", "a", "/a/b", "a b:c", "a:b c", "a:%4", "é:x", "a:é", "1a:b", "a:b\n", "C:\\x"],
    "uri-template": ["{", "}", "{}", "{a", "{a,}", "a b", "%4", "{a:0}", "x\n"],
    "byte": ["a", "aGk", "a-_=", "aGk=\n", "a Gk=", "====", "é"],
    "date-time": ["2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01", "x"],
    "date": ["2026-2-8", "2026-00-01", "2026-01-01T00:00:00Z"],
    "email": ["a", "a@", "@b", "a@b@c", "a b@c"],
}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in GOOD.items() for t in texts])
def test_a_text_of_the_right_form_is_accepted(name: str, text: str) -> None:
    assert FORMATS[name][1](text)


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in BAD.items() for t in texts])
def test_a_text_of_another_form_is_not(name: str, text: str) -> None:
    assert not FORMATS[name][1](text)


def test_every_format_of_the_rows_is_known() -> None:
    from trunkline.spec.revisions import REVISIONS
    from trunkline.spec.types import types

    limits = [
        limit
        for revision in REVISIONS
        for view in types(revision).values()
        for holder in (view, *view.fields.values())
        for limit in holder.limits
    ]
    assert {bound for keyword, bound in limits if keyword == "format"} <= FORMATS.keys()


def test_a_trace_parent_has_four_parts_and_no_empty_id() -> None:
    assert is_traceparent(TRACE)
    assert not is_traceparent(TRACE.upper())
    assert not is_traceparent("ff" + TRACE[2:])
    assert not is_traceparent(TRACE.replace("b7ad6b7169203331", "0" * 16))
