"""A browser for `trunkline login`: it keeps cookies, and follows redirects up to the command.

The environment variable BROWSER names it, so `webbrowser` starts it as it would any other. The user
of `oidc-provider` logs in and consents at once, so there is no form to fill in.
"""

from __future__ import annotations

import sys
from http.cookiejar import CookieJar
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

TIMEOUT_S = 30.0


def main() -> None:
    """Open the URL of the command line."""
    opener = build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()))
    with opener.open(sys.argv[1], timeout=TIMEOUT_S) as response:
        assert response.status == 200


if __name__ == "__main__":
    main()
