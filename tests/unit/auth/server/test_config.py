"""Authentication from a TOML file: tables, secrets, and errors that name their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.canaries import CANARY
from tests.unit.auth.tokens import jwks, key
from trunkline.auth import (
    ApiKeys,
    AuthSettings,
    Credential,
    Dpop,
    Fixed,
    Introspection,
    JwtBearer,
    PeerCertificate,
    PeerUid,
    Principal,
)
from trunkline.auth.server.config import AuthConfigError, load_auth_file

JWT = """
[[jwt]]
issuer = "https://login.example.org"
audience = "https://mcp.example.org/mcp"
"""
INTROSPECTION = """
[introspection]
endpoint = "https://login.example.org/introspect"
client_id = "files"
audience = "https://mcp.example.org/mcp"
"""


def load(tmp_path: Path, text: str, **environment: str) -> AuthSettings:
    path = tmp_path / "auth.toml"
    path.write_text(text)
    return load_auth_file(path, environment)


def test_a_file_has_everything_that_settings_have(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text(json.dumps(jwks(key())))
    (tmp_path / "secret").write_text(f"{CANARY}\n")
    made, record = ApiKeys.generate(subject="build")
    found = load(
        tmp_path,
        f"""
required = false
scopes = ["files:read"]
scopes_supported = ["files:read", "files:write"]
resource = "https://mcp.example.org/mcp"
resource_name = "Files"
documentation = "https://docs.example.org"
authorization_servers = ["https://other.example.org"]
audit_file = "audit.jsonl"

[api_keys]
issuer = "keys"
[[api_keys.keys]]
sha256 = "{record.sha256}"
subject = "build"
scopes = ["files:write"]
tenant = "acme"

[[jwt]]
issuer = "https://login.example.org"
audience = ["https://mcp.example.org/mcp"]
keys_file = "keys.json"
algorithms = ["ES256"]
leeway = 5
tenant_claim = "org"
tenant_required = false

[[jwt]]
issuer = "https://two.example.org"
audience = "https://mcp.example.org/mcp"

[introspection]
endpoint = "https://three.example.org/introspect"
client_id = "files"
client_secret_file = "secret"
audience = "https://mcp.example.org/mcp"

[tenants]
claim = "org"
known = ["acme"]
limits = {{ in_flight = 10 }}
[tenants.limits_of.acme]
sessions = 5
[tenants.tools]
acme = ["search"]

[fixed]
subject = "local"
scopes = ["files:read"]

[peer_uid]
users = {{ "1000" = "ann" }}

[peer_certificate]
name = "dns"
names = ["robot.example.org"]
""",
    )
    assert (found.required, found.scopes, found.resource_name) == (False, ("files:read",), "Files")
    assert found.authorization_servers == ("https://other.example.org",)
    kinds = [ApiKeys, JwtBearer, JwtBearer, Introspection, Fixed, PeerUid, PeerCertificate]
    assert [type(each) for each in found.verifiers] == kinds
    keys, one, _, introspection, fixed, users, _ = found.verifiers
    principal = keys.verify(Credential("bearer", made))
    assert principal == Principal(issuer="keys", subject="build", tenant="acme")
    assert principal.scopes == {"files:write"}
    assert one.algorithms == ("ES256",)
    assert fixed.principal.scopes == {"files:read"}
    assert users.users == {1000: Principal(issuer="unix", subject="ann")}
    assert found.tenants is not None
    assert found.tenants.limits.in_flight == 10
    assert found.tenants.limits_of["acme"].sessions == 5
    assert found.tenants.tools == {"acme": ["search"]}
    assert found.audit is not None
    found.audit.close()  # type: ignore[attr-defined]  # a JsonLinesAudit
    for shown in (repr(found), repr(introspection), str(found)):
        assert CANARY not in shown


def test_proofs_are_for_tokens_of_authorization_servers(tmp_path: Path) -> None:
    _, record = ApiKeys.generate(subject="build")
    keys = f'[[api_keys.keys]]\nsha256 = "{record.sha256}"\nsubject = "build"\n'
    dpop = '[dpop]\nrequired = false\nnonce_secret_env = "NONCES"\nmax_age = 30\n'
    found = load(tmp_path, f"{keys}{JWT}{dpop}", NONCES="n" * 32)
    assert [type(each) for each in found.verifiers] == [ApiKeys, Dpop]
    assert found.verifiers[1].nonce() is not None


def test_proofs_are_required_of_an_endpoint_without_an_issuer_too(tmp_path: Path) -> None:
    text = f'{INTROSPECTION}client_secret_env = "S"\n[dpop]\n'
    (verifier,) = load(tmp_path, text, S="s").verifiers
    assert type(verifier) is Dpop
    assert verifier.schemes == ("dpop",)


def test_tokens_of_other_servers_are_accepted_only_if_the_file_says_so(tmp_path: Path) -> None:
    named = 'audience = "https://mcp.example.org/mcp"\n'
    without = f'{INTROSPECTION.replace(named, "")}client_secret_env = "S"\n'
    for option in ("", "any_audience = false\n", f"{named}any_audience = true\n"):
        with pytest.raises(AuthConfigError, match="audience is this server as tokens name it"):
            load(tmp_path, f"{without}{option}", S="s")
    (verifier,) = load(tmp_path, f"{without}any_audience = true\n", S="s").verifiers
    assert verifier.audience is None


def test_a_secret_is_in_the_environment_or_in_a_file(tmp_path: Path) -> None:
    option = 'client_secret_env = "FILES_SECRET"\n'
    assert load(tmp_path, INTROSPECTION + option, FILES_SECRET="s").verifiers
    (tmp_path / "empty").write_text("\n")
    for given, text in (
        ("", "client_secret_env or client_secret_file is missing"),
        (option, "the environment variable 'FILES_SECRET' is not set"),
        ('client_secret_file = "no-such"\n', "No such file"),
        ('client_secret_file = "empty"\n', "the file 'empty' is empty"),
        (f'{option}client_secret_file = "empty"\n', "two sources"),
        (f'client_secret = "{CANARY}"\n', "does not belong in this file"),
    ):
        with pytest.raises(AuthConfigError, match=text) as caught:
            load(tmp_path, INTROSPECTION + given)
        assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "error"),
    [
        ("x = [", 0, "not TOML"),
        (f"\n\n{CANARY} {CANARY}", 3, "not TOML"),
        (f"scope = []\n{JWT}", 1, "unknown option 'scope', did you mean scopes"),
        (f"\nrequired = 1\n{JWT}", 2, "required is true or false"),
        ("[jwk]\n", 1, "unknown option 'jwk', did you mean jwt"),
        ("[[jwt]]\nissuer = 'https://a.example'\n", 1, "[jwt]: audience is missing"),
        (f"{JWT}audiance = 'x'\n", 5, "[jwt]: unknown option 'audiance', did you mean audience"),
        (f"{JWT}leeway = '5'\n", 5, "[jwt]: leeway is a number"),
        (f"{JWT}leeway = true\n", 5, "[jwt]: leeway is a number"),
        (f"{JWT}algorithms = ['none']\n", 2, "[jwt]: JwtBearer.algorithms"),
        (f"{JWT}algorithms = 'ES256'\n", 5, "[jwt]: algorithms is a list of texts"),
        (f"{JWT}keys_file = 'no-such'\n", 2, "No such file"),
        ("jwt = 7\n", 0, "[jwt]: jwt is a table"),
        ("[api_keys]\n", 1, "[api_keys]: keys is missing"),
        ("[[api_keys.keys]]\nsubject = 'x'\n", 1, "[api_keys.keys]: sha256 is missing"),
        ("[[api_keys.keys]]\nsha256 = 'x'\nsubject = 'x'\n", 0, "[api_keys]"),
        ("[[api_keys.keys]]\nkey = 'x'\n", 2, "key does not belong in this file"),
        (f"{JWT}[dpop]\nnonces = 1\n", 6, "[dpop]: nonces is true or false"),
        (f"{JWT}[dpop]\nnonce_secret_env = 'S'\n", 6, "is not set"),
        (f"{JWT}[tenants]\nheder = 'x'\n", 6, "[tenants]: unknown option 'heder'"),
        (f"{JWT}[tenants]\nclaim = 'a'\npath = '/{{tenant}}'\n", 5, "Tenants takes one source"),
        (f"{JWT}[tenants.limits]\nrate = 0\n", 0, "TenantLimits.rate"),
        (f"{JWT}[tenants.limits]\nrates = 1\n", 6, "[tenants.limits]: unknown option 'rates'"),
        ("[fixed]\nscopes = ['a']\n", 1, "subject is missing"),
        ("[peer_uid]\nusers = { ann = 'ann' }\n", 1, "PeerUid.users"),
        ("[peer_certificate]\nname = 'serial'\n", 1, "PeerCertificate.name"),
        (f"resource = 'x'\n{JWT}", 0, "AuthSettings.resource"),
        (f"scopes = ['offline_access']\n{JWT}", 0, "offline_access"),
        (f"audit_file = 'no/such/folder'\n{JWT}", 0, "No such file"),
        ("", 0, "no table says how callers are recognised"),
        ("[tenants]\nclaim = 'a'\n", 0, "no table says how callers are recognised"),
    ],
)
def test_an_error_names_the_file_the_line_and_the_table(
    tmp_path: Path, text: str, line: int, error: str
) -> None:
    with pytest.raises(AuthConfigError) as caught:
        load(tmp_path, text)
    shown = str(caught.value)
    assert shown.startswith(f"{tmp_path / 'auth.toml'}{f':{line}' if line else ''}: ")
    assert error in shown
    assert CANARY not in shown


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AuthConfigError, match="No such file"):
        load_auth_file(tmp_path / "nothing")
    with pytest.raises(AuthConfigError, match="Is a directory"):
        load_auth_file(tmp_path)
    large = tmp_path / "large"
    large.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(AuthConfigError, match="more than"):
        load_auth_file(large)


def test_every_option_of_a_constructor_has_a_place_or_a_reason() -> None:
    import inspect

    from trunkline.auth.server import config

    without: dict[type, set[str]] = {
        # A key source, a context and a clock are objects; keys are in a file.
        JwtBearer: {"keys", "tls", "clock"},
        Introspection: {"client_secret", "tls", "clock"},
        ApiKeys: {"keys", "clock"},
        Dpop: {"verifier", "store", "nonce_secret", "clock"},
    }
    tables: dict[type, Any] = {
        JwtBearer: config._JWT,
        Introspection: config._INTROSPECTION,
        ApiKeys: config._API_KEYS,
        Dpop: config._DPOP,
    }
    for kind, reasons in without.items():
        options = set(inspect.signature(kind).parameters)
        assert options - reasons <= set(tables[kind]), kind
    from trunkline.auth.server.tenants import TenantLimits, Tenants

    assert set(config._TENANTS) == set(Tenants.__struct_fields__)
    assert set(config._LIMITS) == set(TenantLimits.__struct_fields__)
    fields = set(AuthSettings.__struct_fields__) - {"verifiers", "tenants", "audit"}
    assert set(config._TOP) == fields | {"audit_file"}
