"""`python -m analyze`, and the command `analyze`."""

from __future__ import annotations

import os
from contextlib import suppress

_INTERRUPTED = 130  # what a shell gives a program that Ctrl-C ended


def run() -> None:
    """Run the command line. An interrupt while its modules are imported ends it as a later one does: in one line."""
    try:
        from analyze.cli import main

        main()
    except KeyboardInterrupt:
        with suppress(OSError):
            os.write(2, b"Interrupted; no report was made.\n")
        os._exit(_INTERRUPTED)


if __name__ == "__main__":
    run()
