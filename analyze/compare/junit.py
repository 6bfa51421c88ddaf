"""Gates as JUnit XML, which every CI server draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from analyze.compare.gates import GateResult
from analyze.inert import printable
from analyze.report.about import SCHEMA_VERSION, TOOL
from analyze.report.files import write_text


class WithGates(Protocol):
    """A report on a trace or on a job, with its gates judged."""

    @property
    def gates(self) -> Sequence[GateResult]: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def version(self) -> str: ...  # noqa: D102


def render(judged: WithGates) -> str:
    """One test case per gate; a gate that could not be judged is an error, one that failed a failure."""
    counts = {word: sum(gate.outcome == word for gate in judged.gates) for word in ("failed", "not-judged")}
    suite = Element(
        "testsuite",
        name=f"{TOOL} gates",
        tests=str(len(judged.gates)),
        failures=str(counts["failed"]),
        errors=str(counts["not-judged"]),
    )
    for gate in judged.gates:
        case = SubElement(suite, "testcase", classname=printable(judged.name), name=printable(gate.expression))
        if gate.outcome != "passed":
            kind = "failure" if gate.outcome == "failed" else "error"
            SubElement(case, kind, message=printable(gate.text)).text = printable(gate.text)
    whole = Element("testsuites")
    whole.append(suite)
    indent(whole)
    made_by = f"<!-- {TOOL} {printable(judged.version)}, report schema {SCHEMA_VERSION} -->"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(whole, encoding="unicode")}\n{made_by}\n'


def write_junit(judged: WithGates, path: str, *, force: bool = False) -> None:
    """Write the gates of a report.

    Raises:
        OutputError: somebody else's file, or no way to write there.
    """
    write_text(render(judged), path, force=force)
