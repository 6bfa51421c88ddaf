"""`analyze open`: one file, to one page, once."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from pathlib import Path

import pytest

from analyze.errors import OutputError
from analyze.report.share.serve import ADDRESS, VIEWER, Offer, OneFile
from tests.builder import TraceBuilder


@pytest.fixture
def offer(tmp_path: Path) -> Offer:
    (tmp_path / "trace.json").write_text("[1, 2]")
    return Offer(tmp_path / "trace.json", "trace.json", (5, 9))


def _ask(server: OneFile, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, str | None]:
    connection = http.client.HTTPConnection(ADDRESS, server.port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.getheader("Access-Control-Allow-Origin")


def test_only_the_file_and_only_to_the_viewer(offer: Offer) -> None:
    with OneFile(offer, port=0) as server:
        assert _ask(server, "/")[0] == 404
        assert _ask(server, "/../etc/passwd")[0] == 404
        assert _ask(server, "/trace.json", Host="evil.example:9001")[0] == 403
        assert _ask(server, "/trace.json", Origin="https://evil.example")[0] == 403
        assert _ask(server, "/trace.json", "POST")[0] == 501
        assert _ask(server, "/trace.json", "HEAD")[:2] == (200, b"")
        assert not server.done.is_set()
        assert _ask(server, "/trace.json", Origin=VIEWER) == (200, b"[1, 2]", VIEWER)
        assert server.wait(5)


def test_the_link_shows_the_window(offer: Offer) -> None:
    assert offer.link() == f"{VIEWER}/#!/?url=http://127.0.0.1:9001/trace.json&visStart=5&visEnd=9"


def test_a_port_that_is_taken_is_one_error(offer: Offer) -> None:
    with OneFile(offer, port=0) as first, pytest.raises(OutputError, match="is not free"):
        OneFile(offer, port=first.port)


def test_command(tmp_path: Path) -> None:
    """It prints the link, serves the trace with its tracks, and ends."""
    trace = TraceBuilder().run("gemm", (10, 5), (20, 40)).run("relu", (62, 5), (70, 20)).write(tmp_path / "a b.json")
    command = [sys.executable, "-m", "analyze", "open", str(trace), "--no-browser", "--wait", "30"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        link = process.stdout.readline().strip()
        if not link:
            error = process.stderr.read()
            assert "is not free" in error, error
            pytest.skip("port 9001 of this machine is in use")
        name = link.partition("http://127.0.0.1:9001/")[2].partition("&")[0]
        connection = http.client.HTTPConnection(ADDRESS, 9001, timeout=10)
        connection.request("GET", f"/{name}")
        rows = json.loads(connection.getresponse().read())["traceEvents"]
        assert process.wait(30) == 0
    assert name == "a_b_annotated.json"
    assert {"gpuledger", "kernel"} <= {row.get("cat") for row in rows}
