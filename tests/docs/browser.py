"""A browser for the login of a tutorial: it opens a URL, and allows what the page asks for.

The pages are those of `python -m trunkline.testing.authorization_server`. The environment variable
BROWSER names it, so `webbrowser` starts it as it would any other. It prints nothing.
"""

from __future__ import annotations

import re
import sys
from http.cookiejar import CookieJar
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

FIELD = re.compile(r'<input[^>]* name="(\w+)" value="([^"]*)"')


def main() -> None:
    url = sys.argv[1]
    opener = build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()))
    with opener.open(url, timeout=30) as response:
        fields = dict(FIELD.findall(response.read().decode()))
    assert "csrf_token" in fields, "there is no form on the page"
    form = urlencode({**fields, "decision": "allow"}).encode()
    # The redirect leads to the client, which waits for it.
    with opener.open(url.partition("?")[0], form, timeout=30) as response:
        assert response.status == 200


if __name__ == "__main__":
    main()
