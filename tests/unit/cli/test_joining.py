"""Runs of `proxy` are in `tests/terminal/test_proxy.py`; here is what they decide by."""

from __future__ import annotations

import pytest

from trunkline.cli.joining import _is_exposed
from trunkline.transports.addresses import Tcp, Tls, Unix


@pytest.mark.parametrize(
    ("address", "is_exposed"),
    [
        (Unix("/s"), False),
        (Tcp("127.0.0.1", 1), False),
        (Tcp("::1", 1), False),
        (Tcp("localhost", 1), False),
        (Tcp("0.0.0.0", 1), True),
        (Tcp("192.0.2.1", 1), True),
        (Tcp("host.example", 1), True),
        (Tcp("0.0.0.0", 1, tls=Tls(cert="c")), True),
        (Tcp("0.0.0.0", 1, tls=Tls(cert="c", ca="a")), False),
    ],
    ids=str,
)
def test_who_can_be_reached_from_elsewhere_is_told_so(
    address: Tcp | Unix, is_exposed: bool
) -> None:
    assert _is_exposed(address) is is_exposed
