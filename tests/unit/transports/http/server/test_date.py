"""`http_date`: the Date header."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from trunkline.transports.http.server.response_writer import http_date


# Each month and each day of the week, an end of February and a start of a year.
@pytest.mark.parametrize(
    "seconds", [0, 951_782_399, 951_782_400, 1_735_689_600, *range(10**9, 10**9 + 10**8, 2_600_003)]
)
def test_a_time_is_written_as_http_has_it(seconds: int) -> None:
    assert http_date(seconds + 0.9).decode() == formatdate(seconds, usegmt=True)
