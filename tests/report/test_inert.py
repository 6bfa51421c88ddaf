"""Forty hostile strings in every text of every input, judged by a Markdown renderer, a terminal and an XML parser."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyte
import pytest
from markdown_it import MarkdownIt

from analyze.compare import comparable_of, compare, line_up, read_comparable
from analyze.compare.gates import parse_gate
from analyze.compare.judged import judged_report
from analyze.compare.junit import render as junit
from analyze.errors import GpuledgerError
from analyze.findings import RULES
from analyze.report import Report, build_report, render
from analyze.report.brief import brief
from analyze.report.snapshot import build_snapshot_report
from analyze.report.to_terminal import render as to_terminal
from analyze.snapshot import Snapshot, recorded_beside
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.hostile_strings import HOSTILE
from tests.secrets import planted
from tests.snapshot.conftest import write_pickle
from tests.synthetic.allocator import MIB, Allocator, snapshot

ROOT = Path(__file__).parents[2]
HTML = re.compile(r'</?(?:details|summary|sub|code)>|<a id="finding-[a-z0-9-]+">|</a>')
LINKS = {rule.link for rule in RULES} | {f"#finding-{rule.id}" for rule in RULES}
LIVE = re.compile(r"(?<!\w)@\w|://|(?<![\w&])#\d|\w/[\w.-]+#\d|\bGH-\d|\$|\bwww\.|\w@\w")
GATES = (parse_gate("idle_share > 1%"), parse_gate("step_time > 1s"))


def everywhere(name: str) -> TraceBuilder:
    """A trace with a string in every text."""
    b = TraceBuilder()
    b.metadata |= {"hostname": name, "distributedInfo": {"backend": name, "rank": name}}
    b.metadata["deviceProperties"][0]["name"] = name
    block = dict.fromkeys(("model", "precision", "dtype"), name)
    b.metadata["gpuledger"] = {
        **block, "versions": {"torch": name}, "warmup": {"steady": False, "reason": name},
        "gpu_state": {"unstable": [name]}, "batch_size": 8,
    }  # fmt: skip
    b.row(None, "process_name", 0, 0, ph="M", name_=name).row(name, name, 1, 2).row("cpu_op", name, 1, 2, ph=name)
    b.overhead(name, 3, 1).row("Trace", name, 0, 900, pid=name, tid=name).annotation(name, 0, 400)
    for i in range(2):
        at = 100 * i
        inputs = {"Input Dims": [[2, 3], name], "Input type": ["float", name], "Concrete Inputs": [name]}
        b.row("cpu_op", name, at, 90, pid=name, tid=name, **inputs)
        b.row("python_function", f"/home/{name}/{name}.py(12): {name}", at, 80, pid=name, tid=name)
        b.row("python_function", f"nn.Module: {name}_0", at + 3, 50, pid=name, tid=name)
        b.row("cuda_runtime", name, at + 10, 5, pid=name, tid=name, correlation=7 + i)
        b.kernel(name, at + 20, 40, correlation=7 + i, grid=name, block=[name])
    b.kernel(name, 300, 5, stream=9).rows[-1]["pid"] = f"[{name}] 0"
    return b


def blocks_of(markdown: str) -> list[tuple[str, str]]:
    """The structure of a page: its blocks in order."""
    tokens = MarkdownIt("gfm-like", {"html": True, "linkify": True}).parse(markdown)
    return [(token.type, token.tag) for token in tokens]


def inline_texts(markdown: str) -> Iterator[str]:
    """The texts that stand outside code, after checking that no markup is foreign."""
    parser = MarkdownIt("gfm-like", {"html": True, "linkify": True})
    assert parser.linkify is not None
    parser.linkify.set({"fuzzy_link": False, "fuzzy_email": True})  # as GitHub: a bare domain is no link
    for token in parser.parse(markdown):
        if token.type == "html_block":
            yield html_texts(token.content)
        in_code = False
        for child in token.children or ():
            assert child.type != "image"
            if child.type == "link_open":
                assert child.attrGet("href") in LINKS, child
            elif child.type == "html_inline":
                assert HTML.fullmatch(child.content), child.content
                in_code = child.content == "<code>" or (in_code and child.content != "</code>")
            elif child.type == "text" and not in_code and child.content not in LINKS:
                yield child.content


def html_texts(block: str) -> str:
    assert all(HTML.fullmatch(tag) for tag in re.findall(r"<[^>]*>?", block)), block
    return re.sub(r"<code>.*?</code>|<[^>]*>", "", block)


def check_markdown(text: str) -> None:
    check_characters(text)
    for shown in inline_texts(text):
        assert not LIVE.search(shown), shown


def check_characters(text: str, allowed: str = "\n") -> None:
    odd = [c for c in text if (unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")) and c not in allowed]
    assert not odd, odd


def check_terminal(page: Any) -> None:
    """A terminal shows the lines as they are, and nothing else happens; colours change nothing of that."""
    plain = to_terminal(page, width=120)
    check_characters(plain)
    rows = plain.splitlines()
    for text in (plain, to_terminal(page, width=120, color=True)):
        screen = pyte.Screen(1000, len(rows) + 2)
        pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
        assert screen.title == screen.icon_name == ""
        if plain.isascii():  # wide characters take two cells
            assert [row.rstrip() for row in screen.display[: len(rows)]] == [row.rstrip() for row in rows]
    to_terminal(page, ascii_only=True, color=True).encode("ascii")


def check_all(report: Any) -> None:
    check_markdown(render(report, "md"))
    check_terminal(report.page)
    check_characters(brief(report))
    text = render(report, "json")
    check_characters(text)
    json.loads(text)
    if isinstance(report, Report):
        document = junit(judged_report(report, None, GATES, top=10))
        check_characters(document)
        assert {node.tag for node in ET.fromstring(document).iter()} <= {
            "testsuites", "testsuite", "testcase", "failure", "error",
        }  # fmt: skip


@pytest.mark.parametrize("name", [name.replace("\ud800", "").replace("\udfff", "") for name in HOSTILE], ids=range(40))
def test_of_a_trace(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({**everywhere(name).metadata, "traceEvents": rows_of(everywhere(name))}))
    report = build_report(Trace.load(path))
    check_all(report)
    check_all(build_report(Trace.load(path), range=name))
    for command in report.page.next_steps:
        words = shlex.split(command)
        assert words[:2] in (["analyze", str(path)], ["analyze", "explain"])
        assert "--range" not in words or words[-1] == name
        assert command in render(report, "md").splitlines()


def rows_of(b: TraceBuilder) -> list[dict[str, Any]]:
    return [{**row, "ts": row["ts"] / 1000 + b.offset_us, **({"dur": row["dur"] / 1000} if "dur" in row else {})}
            for row in b.rows]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE, ids=range(40))
def test_the_structure_of_markdown_stays(name: str, tmp_path: Path) -> None:
    """The blocks of a page are those of the same page with a harmless device, op, range and frame."""

    def page(word: str) -> str:
        b = TraceBuilder()
        b.metadata["deviceProperties"][0]["name"] = word
        for i in range(3):
            b.annotation(f"-{word}", 100 * i, 90).op(word, 100 * i + 1, 80).frame(f"a.py(1): {word}", 100 * i + 2, 70)
            b.run("gemm", (100 * i + 10, 5), (100 * i + 20, 30))  # a word in its name could change its kind
        path = tmp_path / "trace.json"
        path.write_text(json.dumps({**b.metadata, "traceEvents": rows_of(b)}))
        return render(build_report(Trace.load(path)), "md")

    lone = any(0xD800 <= ord(character) <= 0xDFFF for character in name)  # has a notice of its own
    assert blocks_of(page(name)) == blocks_of(page("plain\udfff" if lone else "plain"))


@pytest.mark.parametrize("name", HOSTILE, ids=range(40))
def test_of_a_snapshot_and_of_what_capture_noted(name: str, tmp_path: Path) -> None:
    allocator = Allocator()
    allocator.annotate(name, start=True)
    frames = [
        {"name": name, "filename": f"/home/{name}/{name}.py", "line": 3},
        {"name": name, "filename": "", "line": 0},
    ]
    allocator.allocate(3 * MIB, frames, label=name)
    document = snapshot(allocator, settings={name: name})
    document["device_traces"][0].append({**document["device_traces"][0][-1], "action": name, "compile_context": name})
    path = write_pickle(document, tmp_path / "s.pickle")
    noted = {"file": "s.pickle", "events": 2, name: name, "max_entries": name}
    (tmp_path / "run.json").write_text(json.dumps({"snapshot": noted, "tool": {"name": name}, "model": name}))
    check_all(build_snapshot_report(Snapshot.load(path), noted=recorded_beside(path)))


@lru_cache
def sample_report() -> Report:
    return build_report(Trace.load(ROOT / "sample_traces" / "vit_tiny_fp16_small_batch_synthetic.json.gz"))


@lru_cache
def sample_document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(render(sample_report(), "json"))
    return {key: value for key, value in found.items() if key not in ("sections", "kernels", "gaps", "ledger")} | {
        "sections": []
    }


@pytest.mark.parametrize("name", HOSTILE, ids=range(40))
def test_of_a_stored_report(name: str, tmp_path: Path) -> None:
    changed = planted(sample_document(), name, lambda path: path not in (("tool", "name"), ("schema_version",)))
    changed["schema_version"] = f"1.{name}"
    stored = tmp_path / "report.json"
    stored.write_text(json.dumps(changed))
    subject = read_comparable(stored)
    if "\ud800" in name:
        assert subject is None, "half a surrogate pair is no JSON, so the file is no report"
        return
    assert subject is not None
    fresh = comparable_of(sample_report())
    check_all(compare(subject, fresh))
    check_all(compare(fresh, subject))
    check_all(line_up([fresh, subject, subject], ["a", name[:8], "c"]))
    check_all(judged_report(sample_report(), subject, GATES, top=10))


@pytest.mark.parametrize("name", HOSTILE, ids=range(40))
def test_of_messages(name: str, tmp_path: Path) -> None:
    """An error is one line and its hint, whatever the names in it."""
    message = str(GpuledgerError(f"There is no {name}.", f"Pass {name.splitlines()[0]}."))
    check_characters(message)
    assert message.count("\n") == 1
