"""Hostile strings in every text of a job's files: nothing of them is live in any format."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from analyze.ranks import Job
from analyze.report import render
from analyze.report.ranks import build_ranks_report
from analyze.report.ranks.redact import redact_outcome
from analyze.report.redact import Redaction
from tests.hostile_strings import HOSTILE
from tests.ranks.jobs import joined, random_job
from tests.ranks.test_pipeline import job as pipeline
from tests.report import test_inert
from tests.report.test_inert import LINKS, check_characters, check_markdown, check_terminal


def spoiled(documents: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    made = copy.deepcopy(documents)
    for document in made:
        document["deviceProperties"] = [{"id": 0, "name": text}]
        document["distributedInfo"]["nccl_version"] = text + str(document["distributedInfo"]["rank"])
        for event in document["traceEvents"]:
            args = event["args"]
            if "Process Group Name" in args:
                args |= {"Process Group Name": text, "dtype": text}
                args["Process Group Description"] = f"mesh_pp {text}"
            elif "stream" in args:
                event["name"] = text
    return made


@pytest.mark.parametrize("text", HOSTILE[::4])  # the renderers have tests with all of them
def test_nothing_is_live(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_inert, "LINKS", LINKS | {f"#finding-late-rank-{rank}" for rank in range(4)})
    for documents in (random_job(12)[0], pipeline()):
        report = build_ranks_report(joined(spoiled(documents, text)), command="job")
        check_markdown(render(report, "md"))
        check_terminal(report.page)
        written = render(report, "json")
        check_characters(written)
        json.loads(written)


def test_a_redacted_job_shows_no_name_of_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are numbered, and of frames and ops nothing is left."""
    from analyze.ranks import job as module

    chosen = module.choose

    def redacted(summaries: Any, **options: Any) -> Any:
        outcome = module.Outcome(list(summaries))
        return chosen(redact_outcome(outcome, Redaction(names=False)).summaries, **options)

    monkeypatch.setattr(module, "choose", redacted)
    found: Job = joined(spoiled(random_job(12)[0], "secret_project"))
    assert "secret_project" not in render(build_ranks_report(found), "json")
