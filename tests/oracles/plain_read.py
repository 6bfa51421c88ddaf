"""The tables of a trace the plain way: the whole document through `json`, one dictionary per row, `Decimal` times.

Written from the declared schemas alone; it shares no decoding, cutting or conversion with analyze.
"""

from __future__ import annotations

import gzip
import json
import re
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

TABLES = {
    "ops": {"operator", "cpu_op"},
    "runtime": {"runtime", "cuda_runtime", "cuda_driver", "xpu_runtime", "xpu_driver", "mtia_runtime"},
    "activities": {"kernel", "memcpy", "gpu_memcpy", "memset", "gpu_memset", "mtia_ccp_events"},
    "ranges": {"user_annotation"},
    "frames": {"python_function"},
    "overhead": {"overhead"},
    "spans": {"trace"},
}
KINDS = {"mtia_ccp_events": "kernel"}


def ns(value: Any) -> int | None:
    if value is None:
        return None
    return int((Decimal(str(value)) * 1000).to_integral_value(rounding=ROUND_HALF_EVEN))


def whole(value: Any) -> int | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        number = int(value)
    except (TypeError, ValueError):
        return None
    if number >= 2**63:
        return number - 2**64 if number < 2**64 else None
    return number if number >= -(2**63) else None


_CONCRETE = re.compile("conv|_dot_product_")


def compact(value: Any) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def read_plainly(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows by table, in the order of the file, with the columns of the raw schemas (threads as (pid, tid))."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        document = json.load(file, parse_float=Decimal)
    events = document["traceEvents"] if isinstance(document, dict) else document
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in (*TABLES, "memory")}
    for event in events:
        cat, args = event.get("cat", "").lower(), event.get("args") or {}
        if event.get("name") == "[memory]" and event["ph"] in "Xi":
            found["memory"].append(_memory(event, args))
            continue
        if event.get("ph") != "X":
            continue
        for name, categories in TABLES.items():
            if cat in categories:
                found[name].append(_row(name, event, args, cat))
    return found


def _row(table: str, event: dict[str, Any], args: dict[str, Any], cat: str) -> dict[str, Any]:
    dur = ns(event.get("dur"))
    row = {"start_ns": ns(event["ts"]), "dur_ns": None if dur is None else max(dur, 0), "name": event["name"]}
    if table in ("ops", "runtime", "ranges", "frames"):
        row["thread"] = (str(event["pid"]), str(event["tid"]))
    external = whole(args.get("External id", args.get("external id")))
    if table == "ops":
        row |= {
            "external_id": external,
            "sequence": whole(args.get("Sequence number")),
            "forward_thread": whole(args.get("Fwd thread id")) or None,
            "input_dims": compact(args.get("Input Dims")),
            "input_types": compact(args.get("Input type")),
            "concrete_inputs": compact(args.get("Concrete Inputs")) if _CONCRETE.search(row["name"]) else None,
        }
    if table in ("runtime", "activities"):
        row |= {"correlation": whole(args.get("correlation")) or None, "external_id": external}
    if table == "frames":
        row |= {"python_id": whole(args.get("Python id")), "parent_id": whole(args.get("Python parent id"))}
    if table == "activities":
        row |= _activity(event, args, cat)
    return row


def _activity(event: dict[str, Any], args: dict[str, Any], cat: str) -> dict[str, Any]:
    tid = event["tid"].removeprefix("stream ") if isinstance(event["tid"], str) else event["tid"]
    device, stream = whole(args.get("device")), whole(args.get("stream"))
    return {
        "kind": KINDS.get(cat, cat.removeprefix("gpu_")),
        "process": "",
        "device": whole(event["pid"]) if device is None else device,
        "stream": whole(tid) if stream is None else stream,
        "size_bytes": whole(args.get("bytes")),
        "grid": compact(args.get("grid")),
        "block": compact(args.get("block")),
        "registers": whole(args.get("registers per thread")),
        "shared_memory_bytes": whole(args.get("shared memory")),
        "graph": whole(args.get("graph id")),
        "collective": args.get("Collective name"),
        "in_elements": whole(args.get("In msg nelems")) if "Collective name" in args else None,
        "out_elements": whole(args.get("Out msg nelems")) if "Collective name" in args else None,
        "element_type": args.get("dtype") if "Collective name" in args else None,
        **_group(args if "Collective name" in args else {}),
    }


def _group(args: dict[str, Any]) -> dict[str, Any]:
    ranks = args.get("Process Group Ranks")
    return {
        "group": args.get("Process Group Name"),
        "group_description": args.get("Process Group Description"),
        "group_ranks": None if ranks is None else json.dumps(ranks),
        "group_size": whole(args.get("Group size")),
        "group_sequence": whole(args.get("Seq")),
        "source_rank": whole(args.get("Src Rank")),
        "target_rank": whole(args.get("Dst Rank")),
    }


def _memory(event: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    return {
        "time_ns": ns(event["ts"]),
        "thread": (str(event["pid"]), str(event["tid"])),
        "size_bytes": whole(args.get("Bytes")),
        "address": whole(args.get("Addr")),
        "allocated_bytes": whole(args.get("Total Allocated")),
        "reserved_bytes": whole(args.get("Total Reserved")),
        "device_type": whole(args.get("Device Type")),
        "device": whole(args.get("Device Id")),
    }
