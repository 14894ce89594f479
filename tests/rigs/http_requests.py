"""HTTP/1.1 requests as bytes, for clients that send what a library would not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Headers = Iterable[tuple[str, str]]


def request_head(
    method: str, target: str, headers: Headers | Mapping[str, str], version: str = "1.1"
) -> bytes:
    """Return the request line and the headers, in their order, with the empty line after them."""
    named = headers.items() if isinstance(headers, Mapping) else headers
    lines = "".join(f"{name}: {value}\r\n" for name, value in named)
    return f"{method} {target} HTTP/{version}\r\n{lines}\r\n".encode("latin-1")
