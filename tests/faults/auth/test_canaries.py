"""No credential leaves a server by anything that is kept or shown: logs, reprs, audit, metrics.

Each exchange is a real one over HTTP, with everything on that records something: the log of all
loggers from DEBUG on, as text and as JSON, the access log, `RequestLog`, audit, metrics, spans,
and a handler that shows all it has and then fails.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.faults.auth.issuing import AUDIENCE, FIRST
from tests.faults.http.serving import Response, Served, Session, call, make_app, serving
from tests.faults.http.serving import single_headers as head_of
from tests.faults.http.test_websocket import got, knock, opened, text
from tests.rigs.messages import META
from trunkline import Context, HttpSettings, Server
from trunkline.auth import ApiKeys, AuthSettings, Dpop, Introspection, JsonLinesAudit, SigningKey
from trunkline.auth.dpop import make_proof
from trunkline.jsonrpc import Policy
from trunkline.server import JsonFormatter
from trunkline.server.api.middleware import RequestLog

SECRET = "CANARY-client-secret"
NONCES = b"CANARY-nonce-secret-of-32-bytes-or-more"


class Records:
    """All that a server has kept and shown."""

    def __init__(self, app: Server, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        self.app = app
        self.audit = JsonLinesAudit(folder / "audit.jsonl")
        self.answers: list[Response] = []
        self.shown: list[str] = []
        self._caplog = caplog
        self._json = io.StringIO()
        self._handler = logging.StreamHandler(self._json)
        self._handler.setFormatter(JsonFormatter())
        self._spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._spans))
        app.enable_tracing(tracer_provider=provider, record_content=True)
        app.enable_metrics()
        app.middleware(RequestLog())

    @contextmanager
    def on(self, auth: AuthSettings) -> Iterator[Served]:
        """Serve with everything on."""
        settings = HttpSettings(access_log=True, websocket=True, old_sse=True)
        root = logging.getLogger()
        root.addHandler(self._handler)
        try:
            with (
                self._caplog.at_level(0),
                self._caplog.at_level(0, "trunkline"),
                serving(self.app, http=settings, auth=auth) as served,
            ):
                yield served
                listener = served.listener
                self.shown += map(repr, (listener, listener._endpoint, auth, *auth.verifiers))
        finally:
            root.removeHandler(self._handler)

    def everything(self) -> str:
        self.audit.close()
        answers = [each.head.decode("latin-1") + each.body.decode() for each in self.answers]
        parts = [
            *(self._caplog.text, self._json.getvalue()),
            *(self.audit.path.read_text(), self.app.metrics_page().decode()),
            *(repr(self.app.stats()), *self.shown, *answers),
            *(each.to_json() for each in self._spans.get_finished_spans()),
        ]
        return "\n".join(parts)


def revealing_app(**options: Any) -> Server:
    app, _ = make_app(**options)
    log = logging.getLogger("app")

    @app.tool
    async def reveals(ctx: Context) -> str:
        """Show what a handler has, and fail."""
        request = getattr(ctx._request.message.route, "request", None)
        log.warning(
            "%r %r %s %r %r", ctx, ctx.principal, ctx.principal, request, ctx._request.message
        )
        task = asyncio.current_task()
        raise RuntimeError(f"{ctx!r} {ctx.principal!r} {task!r}")

    return app


def send(served: Served, tool: str, headers: list[tuple[str, str]], **more: Any) -> Response:
    with served.connect() as wire:
        message = {**call("tools/call", name=tool, arguments={}, _meta=META), **more}
        return wire.ask(wire.post(message, [*head_of("tools/call", tool), *headers]))


def check(records: Records, *secrets: str, wants: str = "whoami") -> None:
    found = records.everything()
    assert wants in found  # or nothing was recorded
    assert "CANARY" not in found
    for secret in secrets:
        assert secret not in found
        # Nor a part of a token that alone is of use: its signature.
        assert secret.rpartition(".")[2] not in found


def test_tokens_keys_and_proofs_are_shown_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = revealing_app()
    records = Records(app, tmp_path, caplog)
    key, record = ApiKeys.generate(subject="build")
    signer = SigningKey.generate("ES256")
    introspection = Introspection(
        # Nothing listens there: the failure is logged.
        endpoint="http://127.0.0.1:9/introspect",
        client_id="files",
        client_secret=SECRET,
        audience=AUDIENCE,
        prefix="opaque-",
    )
    dpop = Dpop(FIRST.verifier(), required=False, nonce_secret=NONCES)
    auth = AuthSettings(
        verifiers=[ApiKeys([record]), dpop, introspection], resource=AUDIENCE, audit=records.audit
    )
    token = FIRST.token(email="CANARY@example.org", secret="CANARY-claim")
    bound = FIRST.token(cnf={"jkt": signer.thumbprint})
    expired = FIRST.token(lifetime=-100)
    forged = SigningKey.generate(key_id="k").sign({"iss": FIRST.url, "sub": "CANARY"})
    proofs: list[str] = []

    def proof(served: Served, nonce: str | None) -> list[tuple[str, str]]:
        url = f"http://127.0.0.1:{served.port}/mcp"
        proofs.append(make_proof(signer, "POST", url, token=bound, nonce=nonce))
        return [("Authorization", f"DPoP {bound}"), ("DPoP", proofs[-1])]

    with records.on(auth) as served:
        bearers = (token, key, expired, forged, bound, "tlk_CANARY", "opaque-CANARY", "CANARY, x")
        statuses = []
        for each in bearers:
            for tool in ("whoami", "reveals"):
                answer = send(served, tool, [("Authorization", f"Bearer {each}")])
                statuses.append(answer.status)
                records.answers.append(answer)
        assert statuses == [200, 200, 200, 200, *([401] * 8), 503, 503, 400, 400]
        refused = send(served, "whoami", proof(served, None))
        assert refused.status == 401
        nonce = refused.header("dpop-nonce")
        assert nonce is not None
        answer = send(served, "reveals", proof(served, nonce))
        assert answer.status == 200
        records.answers.append(answer)
        session = Session(served, [("Authorization", f"Bearer {token}")])
        records.answers.append(session.call("reveals"))
        with opened(served, [("Authorization", f"Bearer {token}")]) as wire:
            wire.send(text(call("tools/call", name="reveals", arguments={}, _meta=META)))
            assert "isError" in got(wire).data.decode()
        records.answers.append(knock(served, ("Authorization", f"Bearer {forged}")))
    check(records, token, key, bound, expired, forged, nonce, session.id, *proofs)


def test_a_token_in_the_envelope_of_a_message_is_shown_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = revealing_app(policy=Policy.pierre())
    records = Records(app, tmp_path, caplog)
    key, record = ApiKeys.generate(subject="build")
    auth = AuthSettings(verifiers=[ApiKeys([record])], audit=records.audit)
    with records.on(auth) as served:
        for token in (key, f"Bearer {key}", "tlk_CANARY", "CANARY", ""):
            for tool in ("whoami", "reveals"):
                records.answers.append(send(served, tool, [], auth=token))
    check(records, key)
    lines = [json.loads(each) for each in records.audit.path.read_text().splitlines()]
    refused = [each for each in lines if each["outcome"] == "unauthenticated"]
    assert {(each["method"], each["transport"], each["address"]) for each in refused} == {
        ("tools/call", "http", "127.0.0.1")
    }
    # Two wrong tokens for two tools; a request without a token has no event.
    assert (len(refused), len(lines)) == (4, 8)
