"""Environment variables that say where hosts keep their files; tests run without them."""

from __future__ import annotations

import re

from trunkline.hosts.table import HOSTS

HOST_VARIABLES = sorted(
    {
        name
        for host in HOSTS
        for location in host.locations
        for path in location.paths.values()
        for name in re.findall(r"\$\{([A-Z_]+):-", path)
    }
)
