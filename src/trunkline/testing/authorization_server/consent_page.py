"""The pages of the development authorization server.

The rules that live here, and only here:

* A page loads nothing, runs nothing, is shown in no frame, and sends its form to this server or,
  by its redirect, to the client.                                   [SEC-25]
* Every page says that the server is for development only.
* What a client chose is escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from .messages import NO_STORE, EndpointResponse

if TYPE_CHECKING:
    from ...transports.http.response import Headers
    from .authorization import ConsentRequest

__all__ = ["SERVER_NAME", "consent_page", "error_page", "front_page", "page_response"]

SERVER_NAME: Final = "Trunkline authorization server (for development only)"
_WARNING: Final = "This authorization server is for development only: it believes any user name."


def consent_page(consent: ConsentRequest, csrf_token: str, user: str) -> str:
    """Return the page that asks the user for consent."""
    name = consent.client_name or consent.client_id
    scopes = "".join(f"<li>{escape(each)}</li>" for each in sorted(consent.scopes))
    resources = "".join(f"<li>{escape(each)}</li>" for each in consent.resources)
    host = urlsplit(consent.redirect_uri).netloc or consent.redirect_uri
    subject = escape(consent.login_hint or user, quote=True)
    return (
        f"<h1>{escape(name)} asks for access</h1>"
        f"<p>Client: <code>{escape(consent.client_id)}</code>, "
        f"which receives the answer at <code>{escape(host)}</code></p>"
        f"<p>Scopes:</p><ul>{scopes or '<li>none</li>'}</ul>"
        f"<p>Servers:</p><ul>{resources or '<li>not named</li>'}</ul>"
        '<form method="post">'
        f'<input type="hidden" name="csrf_token" value="{escape(csrf_token, quote=True)}">'
        f'<p><label>User <input name="subject" value="{subject}" maxlength="64"></label></p>'
        '<button name="decision" value="allow">Allow</button> '
        '<button name="decision" value="deny">Deny</button>'
        "</form>"
    )


def front_page(issuer: str) -> EndpointResponse:
    """Return the page that says what the server is."""
    return page_response(200, f"<h1>{SERVER_NAME}</h1><p><code>{escape(issuer)}</code></p>")


def error_page(status: int, why: str) -> EndpointResponse:
    """Return a page with an error."""
    return page_response(status, f"<h1>Not possible</h1><p>{escape(why)}.</p>")


def page_response(
    status: int, content: str, headers: Headers = (), redirect_uri: str | None = None
) -> EndpointResponse:
    """Return a page as a response; `redirect_uri` is where its form may lead."""
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{SERVER_NAME}</title></head><body>{content}"
        f"<hr><p><strong>{_WARNING}</strong></p></body></html>"
    )
    targets = ["'self'"]
    if redirect_uri is not None:
        parts = urlsplit(redirect_uri)
        targets.append(f"{parts.scheme}://{parts.netloc}" if parts.netloc else f"{parts.scheme}:")
    policy = (
        f"default-src 'none'; form-action {' '.join(targets)}; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
    return EndpointResponse(
        status,
        page.encode(),
        (
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", policy.encode()),
            (b"x-frame-options", b"DENY"),
            (b"x-content-type-options", b"nosniff"),
            # Not no-referrer: with it browsers send the form with an opaque Origin.
            (b"referrer-policy", b"same-origin"),
            *NO_STORE,
            *headers,
        ),
    )
