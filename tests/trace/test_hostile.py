"""Small hostile files, one wrong thing each: what becomes of each is written down here, from reading the file."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from analyze.errors import NotATraceError
from analyze.trace import Trace
from tests.fuzz.invariants import report_holds, rows_hold

# Rows in the file, rows of it that figures lack, and the notices. A file that is not listed has 15 rows, one value that
# is left out (and counted in `odd-values`), and loses no row.
ODD = ("odd-values",)
UNTIMED = ("rows-without-time", "odd-values")
RIGHT: dict[str, tuple[int, int, tuple[str, ...]]] = {
    "arg_1e99999999999999999999_unused": (15, 0, ()),
    "concat_two_docs": (30, 15, ("further-lists",)),
    "dupkeys": (15, 0, ()),
    "dur_frac_big": (15, 1, UNTIMED),
    "esc_all": (16, 0, ("unknown-category",)),
    "esc_gl": (71, 0, ()),
    "esc_range": (17, 0, ()),
    "gl_surrogate": (15, 0, ()),
    "kernel_cat_null": (15, 0, ("rows-mended",)),
    "kernel_no_cat": (15, 0, ("rows-mended",)),
    "kernel_no_ph": (15, 0, ("rows-mended",)),
    "kernel_one_ph_i": (16, 1, ("odd-rows",)),
    "kernel_only_ph_i": (11, 1, ("odd-rows",)),
    "kernel_ph_i": (15, 0, ("rows-mended",)),
    "kernel_ph_lower": (15, 0, ("rows-mended",)),
    "kernel_ph_num": (15, 0, ("rows-mended", "odd-values")),
    "mem_over": (19, 3, ("memory-rows", "odd-values")),
    "mention": (12, 0, ()),
    "mention2": (14, 0, ()),
    "nested_te_first": (15, 0, ()),
    "op_sum_overflow": (18, 3, UNTIMED),
    "range_shell0": (16, 0, ()),
    "range_shell1": (16, 0, ()),
    "step_nodur": (17, 1, ("rows-without-time",)),
    "string_te_first": (15, 0, ()),
    "sum3": (6, 3, ODD),
    "sum_overflow": (15, 5, ODD),
    "tid_sur": (15, 0, ("events-mended",)),
    "trace_twice_after": (16, 1, ("further-lists",)),
    "trace_twice_first_empty": (15, 0, ()),
    "ts_1e99999999999999999999": (15, 1, UNTIMED),
    "ts_1e999999_str": (15, 1, UNTIMED),
    "ts_frac_big": (15, 1, UNTIMED),
    "ts_neg": (16, 1, UNTIMED),
}


def test_every_hostile_file(shared: Path) -> None:
    files = sorted((shared / "hostile").glob("*.json"))
    if not files:
        pytest.skip("no hostile files")
    for path in files:
        if path.stem == "esc_jax":
            with pytest.raises(NotATraceError, match="JAX"):
                Trace.load(path)
            continue
        rows, lost, notices = RIGHT.get(path.stem, (15, 0, ODD))
        trace = Trace.load(path)
        rows_hold(trace, rows)
        assert sum(trace.recording.account.lost.values()) == lost, path.stem
        assert tuple(notice.id for notice in trace.recording.notices) == notices, path.stem
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            report_holds(trace, again=Trace.load(path))
