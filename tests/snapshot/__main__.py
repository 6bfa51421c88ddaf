"""Rewrite the golden schema: `python -m tests.snapshot`, after a change that is meant."""

from __future__ import annotations

import json
from pathlib import Path

from analyze.report.snapshot import snapshot_schema

(Path(__file__).parent / "snapshot.schema.json").write_text(json.dumps(snapshot_schema(), indent=1) + "\n")
