"""`python -m trunkline` is the command `trunkline`."""

import sys

from .cli import main

sys.exit(main())
