from __future__ import annotations

from pathlib import Path

from tools.run_pyright import block_files

PAGE = """# A page

```python
first = 1
```

```python
# server.py
old = 1
```

```python
# server.py
app = 1
```

```python
# server.py, more
app += 1
```

```sh
not python
```

```python
second = first
```
"""


def test_the_blocks_of_a_page_are_files_with_the_lines_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    files = block_files(page)
    assert sorted(files) == ["page.py", "server.py"]
    lines = [*PAGE.splitlines(), ""]
    for text in files.values():
        for number, line in enumerate(text.splitlines()):
            assert line in ("", lines[number])
    assert files["page.py"].split() == ["first", "=", "1", "second", "=", "first"]
    # The second file of a name begins it again; "more" continues it.
    assert "old" not in files["server.py"]
    assert files["server.py"].index("app = 1") < files["server.py"].index("app += 1")
