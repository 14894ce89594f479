"""Keys of clients: addresses, networks of IPv6, users of a Unix socket, principals."""

from __future__ import annotations

import os
import socket

import pytest

from trunkline.accounts.client_key import client_key, peer_uid, principal_key, user_key


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("", ""),
        ("_hidden", "_hidden"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2::1", "20010db800010002::/64"),
        ("2001:db8:1:2:ffff::", "20010db800010002::/64"),
        ("2001:db8:1:3::1", "20010db800010003::/64"),
        ("a:name", "a:name"),
    ],
)
def test_address_has_a_key(address: str, key: str) -> None:
    assert client_key(address) == key


def test_long_name_is_kept_as_its_hash() -> None:
    name = "x" * 65
    assert len(client_key(name)) < 64
    assert client_key(name) == client_key("x" * 65)
    assert client_key(name) != client_key("x" * 66)
    assert client_key("x" * 64) == "x" * 64


def test_principal_and_user_are_never_an_address() -> None:
    assert principal_key("10.0.0.1") != client_key("10.0.0.1")
    assert user_key(1000) == "user 1000"
    assert user_key(None) == "unix"


def test_user_of_a_unix_socket_is_told_by_the_system() -> None:
    one, two = socket.socketpair()
    with one, two:
        assert peer_uid(one) == os.getuid()
    assert peer_uid(one) is None
