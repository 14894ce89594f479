"""Lines of a shell: words and quotes, and the word under the cursor."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.cli.command import UsageError
from trunkline.cli.shell.words import partial_line, quoted, split_words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("call add a=1", ["call", "add", "a=1"]),
        ("echo text='a b' x=\"c d\"", ["echo", "text=a b", "x=c d"]),
        (r"echo a\ b", ["echo", "a b"]),
        ("  # a comment", []),
        ("echo '#' a#b", ["echo", "#", "a#b"]),
        ("echo $HOME; ls | x", ["echo", "$HOME;", "ls", "|", "x"]),
        ("", []),
    ],
)
def test_words_are_split_as_in_a_posix_shell(line: str, words: list[str]) -> None:
    assert split_words(line) == words


@pytest.mark.parametrize("line", ["echo 'a", 'echo "a', "echo a\\"])
def test_an_open_quote_is_an_error(line: str) -> None:
    with pytest.raises(UsageError, match=r"quote is not closed|nothing follows"):
        split_words(line)


@pytest.mark.parametrize(
    ("text", "words", "word", "start"),
    [
        ("", [], "", 0),
        ("ca", [], "ca", 0),
        ("call ", ["call"], "", 5),
        ("call ad", ["call"], "ad", 5),
        ("call add city='New Y", ["call", "add"], "city=New Y", 9),
        ('call add "', ["call", "add"], "", 9),
        (r"call a\ b", ["call"], "a b", 5),
    ],
)
def test_the_word_under_the_cursor_is_found(
    text: str, words: list[str], word: str, start: int
) -> None:
    assert partial_line(text) == (words, word, start)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=4))
def test_quoted_words_are_parsed_by_shlex_and_partial_line(words: list[str]) -> None:
    line = " ".join(map(quoted, words))
    assert shlex.split(line) == words
    partial = partial_line(f"{line} ")
    assert (partial.words, partial.word) == (words, "")
