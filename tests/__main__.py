"""All checks with one command, `python -m tests`: lint, format, types, import contracts, tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
CHECKS = (
    (BIN / "ruff", "check", "."),
    (BIN / "ruff", "format", "--check", "."),
    (BIN / "mypy",),
    (BIN / "lint-imports",),
    (sys.executable, "-m", "pytest", "-q", "-n", "auto", *sys.argv[1:]),
)


def main() -> int:
    """Run every check, the tests last; the first failure ends it with its exit code."""
    for check in CHECKS:
        print("$", Path(check[0]).name, *check[1:], flush=True)
        code = subprocess.run([*map(str, check)], cwd=ROOT, check=False).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
