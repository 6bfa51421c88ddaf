"""Rewrite the golden reports and the JSON Schemas. Read the difference before committing it."""

from __future__ import annotations

import json

from analyze.report import render
from analyze.report.findings_page import findings_page
from tests.golden import EXTENSIONS, FINDINGS, GOLDEN, SAMPLES, SCHEMAS, golden_report

for path in SAMPLES:
    report = golden_report(path)
    for form, extension in EXTENSIONS.items():
        target = GOLDEN / f"{path.name.removesuffix('.json.gz')}{extension}"
        target.write_text(render(report, form), encoding="utf-8")
        print(target)
for name, schema in SCHEMAS.items():
    (GOLDEN / name).write_text(json.dumps(schema(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
FINDINGS.write_text(findings_page(), encoding="utf-8")
