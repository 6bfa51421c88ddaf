"""`python -m analyze`, and the command `analyze`."""

from __future__ import annotations

import os

_INTERRUPTED = 130  # what a shell gives a program that Ctrl-C ended


def run() -> None:
    """Run the command line. An interrupt while its modules are imported ends it as a later one does: in one line."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts threads for algebra, and nothing here does any
    try:
        from analyze.cli import main

        main()
    except KeyboardInterrupt:
        try:  # noqa: SIM105 - contextlib is one more import that an interrupt could meet
            os.write(2, b"Interrupted; no report was made.\n")
        except OSError:
            pass
        os._exit(_INTERRUPTED)


if __name__ == "__main__":
    run()
