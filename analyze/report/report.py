"""The document that every format draws: what was measured, the verdict, the figures, the blocks that show them."""

from __future__ import annotations

from typing import Any, Protocol

import polars as pl
from msgspec import Struct
from msgspec.structs import asdict

from analyze.blocks import Page
from analyze.findings import Diagnosis, Verdict
from analyze.findings.finding import Finding
from analyze.guard import present
from analyze.metrics import QUESTIONS, Measures
from analyze.report.notebook import Shown
from analyze.report.plain import frame, plain
from analyze.settings import Definitions
from analyze.trace import Recorded


class Document(Protocol):
    """What every format can be made of, whether it is about a trace, a snapshot or a comparison."""

    @property
    def page(self) -> Page:
        """What text formats draw."""
        ...

    def as_json(self) -> dict[str, Any]:
        """The whole content, as dictionaries, lists, texts and numbers."""
        ...


class TraceInfo(Struct, frozen=True):
    """What was measured.

    Attributes:
        name: base name of the file.
        sha256: hash of its bytes.
        size_bytes: size on disk.
        writer: exporter.
        device_names: names of the devices with activities, without repeats.
        runtime: CUDA or ROCm version, empty where not recorded.
        flags: profiler options that were on.
        rank: rank in the job, None outside distributed runs.
        world_size: ranks of the job, None outside distributed runs.
        steps: profiler steps accounted for.
        selection: what was selected, empty for everything.
        window_ns: window of the headline device.
        cut: the file ends early.
        recorded: what `capture` stored in the file, None in other files.
    """

    name: str
    sha256: str
    size_bytes: int
    writer: str
    device_names: tuple[str, ...]
    runtime: str
    flags: tuple[str, ...]
    rank: int | None
    world_size: int | None
    steps: int
    selection: str
    window_ns: int
    cut: bool
    recorded: Recorded | None


class Metric(Struct, frozen=True):
    """One figure for scripts.

    Attributes:
        value: the figure, None where it could not be measured.
        unit: ns, share (0..1), count, bytes or per_s.
        better: "lower" or "higher".
        of: the whole that a share is of, empty otherwise.
    """

    value: float | int | None
    unit: str
    better: str
    of: str = ""


class Report(Shown, Struct, frozen=True):
    """One report on a trace, independent of any format.

    Attributes:
        version: version of the program.
        trace: what was measured.
        verdict: the judgement.
        diagnosis: what to do about it.
        measures: every figure.
        metrics: the figures that scripts ask for, by id.
        page: what text formats draw.
        definitions: what the figures mean.
    """

    version: str
    trace: TraceInfo
    verdict: Verdict
    diagnosis: Diagnosis
    measures: Measures
    metrics: dict[str, Metric]
    page: Page
    definitions: Definitions

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What to do, most saving first."""
        return self.diagnosis.findings

    @property
    def ledger(self) -> pl.DataFrame:
        """Owners of the window's time: `owner`, `ns`, `share` of the window, `idle`; empty without a device."""
        whole = self.page.whole
        total = whole.total_ns if whole else 0
        rows = (
            [(part.label, part.ns, part.ns / total if total else 0.0, part.idle) for part in whole.parts]
            if whole
            else []
        )
        schema = {"owner": pl.String, "ns": pl.Int64, "share": pl.Float64, "idle": pl.Boolean}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @property
    def kernels(self) -> pl.DataFrame:
        """Activities by name, most time first; times in ns."""
        return pl.DataFrame([asdict(kernel) for kernel in self.measures.kernels])

    @property
    def ops(self) -> pl.DataFrame:
        """Ops, ranges and API calls by name, as `key_averages()` has them; times in ns."""
        return pl.DataFrame([asdict(op) for op in self.measures.ops.ops], infer_schema_length=None)

    def as_json(self) -> dict[str, Any]:
        """The report by the keys of its contract, `tests/golden/report.schema.json`.

        `comparison` and `gates` are filled in by `compare.judged`, which adds both to a report.
        """
        return {
            **frame(self.version, self.page),
            "trace": plain(self.trace),
            "definitions": plain(self.definitions),
            "verdict": plain(self.verdict),
            "metrics": plain(self.metrics),
            "findings": plain(self.diagnosis.findings),
            "checks_passed": [passed.id for passed in self.diagnosis.passed],
            "checks_not_measured": plain(self.diagnosis.unmeasured),
            "limits": plain(self.diagnosis.limits),
            "hidden_costs": plain(self.diagnosis.hidden),
            "savings_together": plain(self.diagnosis.together),
            "comparison": None,
            "gates": [],
            "ledger": plain(self.page.whole),
            "notices": plain(self.page.notices),
            "not_measured": plain(self.page.not_measured),
            **self._answers(),
        }

    def _answers(self) -> dict[str, Any]:
        """Every published answer by its key; one that could not be found for an internal error has no key."""
        published = ((one, self.measures.ask(one)) for one in QUESTIONS if one.answer is not None)
        return {one.key: plain(one.shown(found, self.definitions)) for one, found in published if present(found)}
