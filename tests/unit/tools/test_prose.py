"""`tools/prose.py`: what counts as prose, what counts as a hit, and where each hit stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.prose import (
    HABITS,
    Passage,
    comment_blocks,
    docs_of,
    hits_in,
    is_oblique,
    main,
    measures,
    names_of_tests,
    over_limit,
    page_passage,
    source_of,
    source_passages,
    words_in,
)

PATH = Path("made_up.py")
WHO, SAY, IS_NO = (habit.name for habit in HABITS)


def passage(text: str) -> Passage:
    return Passage(PATH, 1, text)


def found(text: str) -> list[tuple[str, int, str]]:
    return [(hit.habit.name, hit.line, hit.text) for hit in hits_in(source_passages(PATH, text))]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Whoever calls gets a number.", WHO),
        ("The one to whom it belongs.", WHO),
        ("Nobody reads it.", WHO),
        ("Closed by somebody.", WHO),
        ("The caller is told who's there.", WHO),
        ("Say whether it is open.", SAY),
        ("Read it. Say why not.", SAY),
        ("Say\nwhat is missing.", SAY),
        ("It is no server.", IS_NO),
        ("There is none.", IS_NO),
        ("There is\nno way.", IS_NO),
    ],
)
def test_a_turn_of_phrase_is_found(text: str, name: str) -> None:
    assert [hit.habit.name for hit in hits_in([passage(text)])] == [name]


@pytest.mark.parametrize(
    "text",
    [
        "The whole of it, and a whodunit.",
        "Somebodies and a nobodyish word.",
        "The tables say what it is.",
        "Return True if it is open; say so.",
        "It is no longer open.",
        "The value is None.",
        "This no-op is not here.",
    ],
)
def test_plain_english_is_left_alone(text: str) -> None:
    assert list(hits_in([passage(text)])) == []


SOURCE = '''\
"""A module that nobody reads.

    example = whoever()

Raises:
    Error: there is
        no way.
"""

NAME = "nobody"  # who, in `nobody`


class Thing:
    """Say whether `who` is there."""

    colour = "is no colour"
    """The colour; there is none."""

    def act(self):
        # One that
        # is
        # no more.
        return "Say what"
'''


def test_docstrings_and_comments_are_read_and_code_and_strings_are_not() -> None:
    assert sorted(found(SOURCE), key=lambda hit: hit[1]) == [
        (WHO, 1, "nobody"),
        (IS_NO, 6, "is no"),
        (WHO, 10, "who"),
        (SAY, 14, "Say whether"),
        (IS_NO, 17, "is none"),
        (IS_NO, 21, "is no"),
    ]


def test_lines_with_nothing_but_a_comment_are_one_block() -> None:
    source = "a = 1  # one\n# two\n# three\n\n# four\nb = 2  # five\nc = 3  # six\n"
    blocks = [(block.line, block.text) for block in comment_blocks(PATH, source)]
    assert blocks == [(1, "one\ntwo\nthree"), (5, "four"), (6, "five"), (7, "six")]


def test_a_page_is_read_without_code_and_link_targets_and_keeps_its_line_numbers() -> None:
    page = (
        "# A page\n"
        "```python\n"
        "whoever = somebody\n"
        "```\n"
        "Use `nobody`, see [who](nobody.md).\n"
        "<!-- there\n"
        "is none -->\n"
        "There is none.\n"
    )
    hits = hits_in([page_passage(Path("page.md"), page)])
    assert [(hit.line, hit.text) for hit in hits] == [(5, "who"), (8, "is none")]


def test_words_around_code_are_not_neighbours() -> None:
    assert list(hits_in(source_passages(PATH, "# it is `not`\n# no\n"))) == []
    assert list(hits_in(source_passages(PATH, "# it is `x` no\n"))) == []


def test_words_are_counted_without_numbers_and_code() -> None:
    assert words_in(source_passages(PATH, "# It's a well-known port: 8080, `not this`.\n")) == 4
    assert words_in([passage("")]) == 0


def test_limits_hold_per_thousand_words_or_in_all() -> None:
    plain = ["word"] * 1000
    assert over_limit(measures([passage(" ".join([*plain, "who"]))])) == []
    assert [habit.name for habit in over_limit(measures([passage("nobody somebody")]))] == [WHO]
    ten = ["Say how."] * 10
    assert over_limit(measures([passage(" ".join(ten))])) == []
    eleven = measures([passage(" ".join([*ten, "Say how."]))])
    assert [habit.name for habit in over_limit(eleven)] == [SAY]
    assert over_limit(measures([])) == []


@pytest.mark.parametrize(
    "name",
    [
        "test_what_is_closed_stays_closed",
        "test_who_calls_first_wins",
        "test_it_works",
        "test_nobody_waits",
        "test_that_which_ends_is_dropped",
        "test_a_client_is_told",
        "test_a_server_hears_of_it",
        "test_a_number_is_no_text",
        "test_a_user_who_leaves",
        "test_it_begins_anew",
    ],
)
def test_oblique_test_name_is_found(name: str) -> None:
    assert is_oblique(name)


@pytest.mark.parametrize(
    "name",
    [
        "test_whatever_value_is_encoded",
        "test_item_is_sent",
        "test_whole_message_is_sent",
        "test_server_is_notified",
        "test_id_is_not_text",
        "test_renewed_token_is_sent",
        "test_whois",
    ],
)
def test_plain_test_name_is_not_oblique(name: str) -> None:
    assert not is_oblique(name)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "src/thing/a.py": '"""Whoever reads this."""\n',
        "src/thing/made.py": '"""Values.\n\nGenerated by a tool: do not edit. Nobody does.\n"""\n',
        "docs/deep/page.md": "There is none.\n",
        "README.md": "Nobody.\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_generated_files_are_left_out(tree: Path) -> None:
    assert {each.path.name for each in source_of(tree)} == {"a.py"}


def test_the_docs_are_all_pages_and_the_readme(tree: Path) -> None:
    assert [each.path.as_posix() for each in docs_of(tree)] == ["README.md", "docs/deep/page.md"]


def test_names_of_tests_are_counted_in_functions_and_methods(tree: Path) -> None:
    path = tree / "tests/unit/test_thing.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "def test_what_is_odd(): ...\n"
        "async def test_plain(): ...\n"
        "class TestThing:\n    def test_who_calls(self): ...\n"
        "def helper_who_helps(): ...\n",
        encoding="utf-8",
    )
    names = names_of_tests(tree)
    assert (names.total, round(names.percent)) == (3, 67)
    assert names.oblique == [
        "tests/unit/test_thing.py:1: test_what_is_odd",
        "tests/unit/test_thing.py:4: test_who_calls",
    ]
    assert names_of_tests(tree / "docs").percent == 0


def test_the_command_lists_and_checks(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = ["--root", str(tree)]
    assert main([*root, "--list"]) == 0
    listed = capsys.readouterr().out
    assert "src/thing/a.py:1: Whoever\n" in listed
    assert "README.md:1: Nobody\n" in listed
    assert main([*root, "--check"]) == 1
    assert WHO in capsys.readouterr().err
    (tree / "src/thing/a.py").write_text('"""A thing."""\n', encoding="utf-8")
    assert main([*root, "--check"]) == 0, "the docs have no limit"
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["src", "2", "0", "0.00", "0", "0", "0.00"] in rows
    assert ["docs", "4", "1", "250.00", "0", "1", "250.00"] in rows
