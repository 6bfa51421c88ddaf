"""Secrets of many kinds, in every field that a trace can have: none is in the bytes of the redacted copy."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analyze.report.share.redact_file import Shared, redact_file
from tests.secrets import ADDRESSES, MARK, OF_MACHINES, SECRETS

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "vit_tiny_fp32_synthetic.json.gz"
ALL = (*SECRETS, *OF_MACHINES, *ADDRESSES)
assert len(ALL) == len(set(ALL)) > 40
Event = dict[str, Any]


def arguments(secret: str) -> Iterator[Any]:
    """A secret as key, as value, nested, and in each argument that the profilers write."""
    yield secret
    yield [secret]
    yield {secret: 1}
    yield {"note": secret, "nested": {"deep": [secret, {secret: secret}]}}
    yield {"Call stack": f"{secret};{secret}(3): run", "Module Hierarchy": secret, "Fwd thread id": secret}
    yield {"Input Dims": [[secret], secret], "Input type": [secret], "Concrete Inputs": [secret, f"[{secret}]"]}
    yield {"External id": secret, "correlation": secret, "device": secret, "stream": [secret], "Ev Idx": {secret: 1}}
    yield {"grid": secret, "block": [secret, 1, 1], "kernel_file": secret, "kernel_hash": secret}
    yield {
        **{f"Process Group {key}": secret for key in ("Name", "Description", "Ranks")},
        "Collective name": secret, "dtype": secret, "In msg nelems": secret,
    }  # fmt: skip


def events(secret: str) -> Iterator[Event]:
    """A secret in each field of each kind of event, but for the names that are kept without --redact-names."""
    for cat in ("cpu_op", "kernel", "cuda_runtime", "user_annotation", "python_function", "fwdbwd", "unheard of"):
        yield from ({"ph": "X", "cat": cat, "name": "aten::mm", "args": args} for args in arguments(secret))
        yield {"ph": "X", "cat": cat, "name": "aten::mm", "pid": secret, "tid": secret}
        yield {"ph": "X", "cat": cat, "name": "aten::mm", "pid": f"[{secret}] 7", "id": secret, secret: secret}
    for ph in ("s", "f", "t", "i", "C", "B", "E", "b", "n", "M", "N", "c", secret):
        yield {"ph": ph, "cat": secret, "name": secret, "id": secret, "bp": secret, "s": secret, "args": {secret: 1}}
        yield {"ph": ph, "cat": "ac2g", "name": secret, "id": f"0x{secret}", "args": {"value": secret}}
    for name in ("process_name", "process_labels", "thread_name", "process_sort_index", secret):
        yield {"ph": "M", "name": name, "args": {"name": secret, "labels": secret, "sort_index": secret, secret: 1}}
        yield {"ph": "M", "name": name, "args": {"name": f"python {secret}", "labels": f"GPU 0 {secret}"}}
        yield {"ph": "M", "name": name, "args": {"name": f"thread 7 ({secret})"}}
    yield {"ph": "X", "cat": "overhead", "name": secret}
    yield {"ph": "X", "cat": "Trace", "name": secret, "pid": "Spans", "tid": secret}
    yield {"ph": "X", "cat": "python_function", "name": f"{secret}/x/model.py(3): run"}
    yield {"ph": "X", "cat": "python_function", "name": f"<built-in method get of {secret} object at 0x7f>"}
    yield {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": secret, "dur": secret}


def named(secret: str) -> Iterator[Event]:
    """A secret in the names that --redact-names replaces, alone and beside words that figures depend on."""
    words = ("attention ", "DataLoader ", "dynamo_timed ", "nccl:all_reduce ", "Optimizer.step#", "ProfilerStep#")
    for word in ("", *words):
        for cat in ("user_annotation", "gpu_user_annotation"):
            yield {"ph": "X", "cat": cat, "name": f"{word}{secret}"}
    yield {"ph": "X", "cat": "user_annotation", "name": f"{secret}: Torch-Compiled Region: 1/2 {secret}"}
    for name in (secret, "Attention" + secret, secret + "MoeBlock", f"{secret}.<locals>.Linear"):
        yield {"ph": "X", "cat": "python_function", "name": f"nn.Module: {name}_0"}
    for place in ("torch/cuda/memory.py(3)", "<string>(2)", "model.py(9)"):
        yield {"ph": "X", "cat": "python_function", "name": f"{place}: {secret}"}
        yield {"ph": "X", "cat": "python_function", "name": f"{place}: {secret}.<locals>.<lambda>"}
    yield {"ph": "X", "cat": "python_function", "name": f"<built-in function {secret}>"}
    yield {"ph": "X", "cat": "python_function", "name": f"<{secret}>"}
    yield {"ph": "X", "cat": "python_function", "name": f"<frozen {secret}>(1): run"}


def top_level(secret: str) -> Event:
    known = ("distributedInfo", "gpuledger", "traceName", "schemaVersion", "cuda_runtime_version", "displayTimeUnit",
             "with_stack", "trace_id", "hostname", "environment", "otherData", "metadata")  # fmt: skip
    nested = {"backend": secret, "pg_config": [{"pg_name": secret, "ranks": secret, "pg_desc": secret, secret: 1}]}
    return {secret: secret, f"{secret} 2": {"deep": [nested]}, **dict.fromkeys(known[3:], secret)} | {
        "distributedInfo": {**nested, "nccl_version": secret, "rank": secret},
        "gpuledger": {"model": secret, "environment": {secret: secret}, "versions": {"torch": secret}, secret: secret},
    }


def redacted(tmp_path: Path, *, names: bool) -> tuple[Shared, str, str]:
    """A real trace with everything planted in it: what was done, the text before, and the text after."""
    document: Event = json.loads(gzip.decompress(SAMPLE.read_bytes()))
    at = min(event["ts"] for event in document["traceEvents"] if "ts" in event)
    for secret in ALL:
        rows = [*events(secret), *(named(secret) if names else ())]
        document["traceEvents"] += [{"pid": 1, "tid": 1, "ts": at, "dur": 1, **row} for row in rows]
        document = {**document, **top_level(secret)}
        document["deviceProperties"].append({"id": 9, "name": secret, secret: secret, "uuid": secret})
    document = {**document, "traceEvents": document.pop("traceEvents")} | {f"{secret} behind": secret for secret in ALL}
    planted, shared = tmp_path / "trace.json", tmp_path / "shared.json.gz"
    planted.write_text(json.dumps(document, ensure_ascii=False))
    done = redact_file(planted, shared, names=names)
    return done, planted.read_text(), gzip.decompress(shared.read_bytes()).decode()


@pytest.mark.parametrize("names", [False, True])
def test_no_planted_secret_is_in_the_bytes(names: bool, tmp_path: Path) -> None:
    done, before, after = redacted(tmp_path, names=names)
    for secret in (MARK, *ADDRESSES):
        assert before.lower().count(secret) > 100, "it was planted"
        at = after.lower().find(secret)
        assert at < 0, after[max(at - 200, 0) : at + 100]
        assert secret not in "\n".join(done.lines()).lower()
    assert json.loads(after)["traceEvents"]
    found = done.taken.secrets()
    assert {"access key", "e-mail address", "home folder", "IP address", "MAC address", "private key",
            "password or token", "URL with a password"} == set(found)  # fmt: skip
    assert found["MAC address"] == 1
