"""`python -m credo`: the command line, where the script `credo` is not on the path."""

from __future__ import annotations

import sys

from credo.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
