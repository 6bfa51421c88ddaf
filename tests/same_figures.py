"""Whether a change leaves every figure as it was: `python -m tests.same_figures FILE` writes all figures of the
reference traces to FILE, or, where FILE exists, prints what differs from it.

Lists of notices and sections are text, and left out; everything else of the JSON report that is a number counts, by the
path of its key. `--renamed OLD=NEW` gives a key of the file its new name.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analyze import Trace, build_report
from analyze.errors import GpuledgerError
from tests.golden import SAMPLES

SHARED = Path(os.environ.get("GPULEDGER_SHARED", "../shared"))
_TEXT = {"sections", "tool", "schema_version"}
_SHOWN = 40


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, float | int | bool | None]]:
    """Every number of a document with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple):
        yield f"{path}.length", len(value)
        for i, item in enumerate(value):
            yield from numbers(item, f"{path}.{i}")
    elif isinstance(value, int | float | None):
        yield path, value


def figures() -> dict[str, dict[str, Any]]:
    """The figures of each reference trace that can be read."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted([*SAMPLES, *SHARED.glob("traces/*.json.gz"), *SHARED.glob("more/*")]):
        try:
            document = build_report(Trace.load(path)).as_json()
        except GpuledgerError as error:
            found[path.name] = {"error": str(error)}
            continue
        found[path.name] = dict(numbers({key: part for key, part in document.items() if key not in _TEXT}))
    return found


def differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Figures that are not the same in both, or only in one."""
    for name in sorted(old.keys() | new.keys()):
        one, other = old.get(name, {}), new.get(name, {})
        for path in sorted(one.keys() | other.keys()):
            if one.get(path, "absent") != other.get(path, "absent"):
                yield f"{name}: {path}: {one.get(path, 'absent')} -> {other.get(path, 'absent')}"


def main() -> None:
    """Write the figures, or compare with those that are written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW")
    options = parser.parse_args()
    now = figures()
    if not options.file.exists():
        options.file.write_text(json.dumps(now), encoding="utf-8")
        print(f"{sum(map(len, now.values())):,} figures of {len(now)} files written")
        return
    names = dict(one.split("=") for one in options.renamed)
    before = {
        file: {".".join(names.get(key, key) for key in path.split(".")): value for path, value in found.items()}
        for file, found in json.loads(options.file.read_text(encoding="utf-8")).items()
    }
    found = list(differences(before, now))
    print("\n".join(found[:_SHOWN]))
    print(f"{len(found):,} of {sum(map(len, now.values())):,} figures of {len(now)} files differ")


if __name__ == "__main__":
    main()
