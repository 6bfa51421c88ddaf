"""The figures of a job by brute force, written from docs/ranks.md alone: slow and obvious, no arrays, no shared code.

It reads documents as `tests.ranks.jobs` writes them: one device per file, kernels, copies, args on every collective.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from decimal import Decimal
from typing import Any

US = 1000
KINDS = {
    "allreduce": "all_reduce", "_allgather_base": "all_gather", "_reduce_scatter_base": "reduce_scatter",
    "all_to_allv": "all_to_all", "barrier": "barrier", "broadcast": "broadcast", "send": "send", "recv": "recv",
}  # fmt: skip
SYMMETRIC = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier"}
SIZES = {"Float": 4, "BFloat16": 2}
PARTS = ("computation", "transfer", "unsplit", "wait", "copy", "idle")
Span = tuple[int, int]


def ns(us: Any) -> int:
    return int(Decimal(str(us)) * US)


def lower_median(values: list[int]) -> int:
    return sorted(values)[(len(values) - 1) // 2]


def inside(t: int, spans: list[Span]) -> bool:
    return any(a <= t < b for a, b in spans)


def load(document: dict[str, Any]) -> dict[str, Any]:
    """One rank: its events, computation and copies."""
    base = document.get("baseTimeNanoseconds", 0)
    found: dict[str, Any] = {"rank": document["distributedInfo"]["rank"], "events": [], "computation": [], "copy": []}
    for e in document["traceEvents"]:
        start = base + ns(e["ts"])
        span = (start, start + ns(e["dur"]))
        args = e["args"]
        if e["cat"] == "gpu_memcpy":
            found["copy"].append(span)
        elif "Collective name" not in args:
            found["computation"].append(span)
        else:
            members = [int(r) for r in args["Process Group Ranks"].strip("[]").split(",")]
            found["events"].append(
                {
                    "rank": found["rank"],
                    "group": f"pg {args['Process Group Name']} {members}",
                    "members": members,
                    "kind": KINDS[args["Collective name"]],
                    "seq": args.get("Seq"),
                    "pair": (args.get("Src Rank"), args.get("Dst Rank")),
                    "nin": args["In msg nelems"],
                    "nout": args["Out msg nelems"],
                    "dtype": args["dtype"],
                    "start": span[0],
                    "end": span[1],
                }
            )
    found["events"].sort(key=lambda e: (e["start"], e["end"]))
    return found


def match(events: list[dict[str, Any]]) -> tuple[str, list[list[dict[str, Any]]]]:
    """Collectives of one group: lists of events, in order, each with its index."""
    if all(e["seq"] is not None for e in events):
        seen: dict[Any, int] = defaultdict(int)
        entries: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        for e in events:
            p2p = e["kind"] in ("send", "recv")
            key = (e["seq"], p2p, tuple(sorted(e["pair"])) if p2p else ())
            entries[(*key, seen[e["rank"], key])].append(e)
            seen[e["rank"], key] += 1
        for key, entry in entries.items():
            for e in entry:
                e["index"] = key[0]
        return "seq", [sorted(entries[k], key=lambda e: e["rank"]) for k in sorted(entries)]
    found = by_order(events)
    if found is not None:
        return "order", number(found)
    return "ends", number(by_ends(events))


def number(entries: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    for index, entry in enumerate(entries):
        for e in entry:
            e["index"] = index
    return [sorted(entry, key=lambda e: e["rank"]) for entry in entries]


def signature(e: dict[str, Any]) -> Any:
    return e["kind"], e["nin"], e["nout"], e["dtype"]


def by_order(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]] | None:
    lists: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for e in events:
        lists[e["rank"]].append(e)
    reference = min(lists, key=lambda r: (-len(lists[r]), r))
    ref, slots, offset = lists[reference], defaultdict(list), {}
    for rank, mine in lists.items():
        best = None
        for shift in range(-len(mine) + 1, len(ref)) if rank != reference else [0]:
            pairs = [(m, ref[i + shift]) for i, m in enumerate(mine) if 0 <= i + shift < len(ref)]
            unequal = sum(signature(a) != signature(b) for a, b in pairs)
            unequal += len(mine) - len(pairs) + len(ref) - len(pairs)
            distance = lower_median([abs(a["end"] - b["end"]) for a, b in pairs])
            rating = (unequal, distance, abs(shift), shift)
            if best is None or rating < best[0]:
                best = rating, lower_median([a["end"] - b["end"] for a, b in pairs])
        assert best is not None
        offset[rank] = best[1]
        for i, m in enumerate(mine):
            slots[i + best[0][3]].append(m)
    several = [entry for entry in slots.values() if len(entry) > 1]
    fit = 0
    for entry in several:
        ends = [e["end"] - offset[e["rank"]] for e in entry]
        fit += len({signature(e) for e in entry}) == 1 and max(ends) - min(ends) <= 1_000_000
    return [slots[k] for k in sorted(slots)] if fit >= 0.9 * len(several) else None


def by_ends(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    found: list[list[dict[str, Any]]] = []
    for e in sorted(events, key=lambda e: (e["end"], e["rank"], e["start"])):
        last = found[-1] if found else None
        if (
            last
            and e["rank"] not in {o["rank"] for o in last}
            and e["kind"] == last[0]["kind"]
            and e["end"] - last[0]["end"] <= 1_000_000
        ):
            last.append(e)
        else:
            found.append([e])
    return found


def level(entry: list[dict[str, Any]]) -> int | None:
    kinds = {e["kind"] for e in entry}
    if len(entry) == 2 and sorted(e["kind"] for e in entry) == ["recv", "send"]:
        return 2
    if len(kinds) == 1 and len(entry) > 1 and kinds <= SYMMETRIC:
        return 1 if kinds == {"all_to_all"} else 0
    return None


def clocks(entries: list[list[dict[str, Any]]], ranks: list[int]) -> dict[int, int]:
    edges: dict[tuple[int, int], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for entry in entries:
        rated = level(entry)
        if rated is not None:
            for a in entry:
                for b in entry:
                    if a["rank"] != b["rank"]:
                        edges[a["rank"], b["rank"]][rated].append(b["end"] - a["end"])
    offset: dict[int, int] = {}
    for start in ranks:
        if start in offset:
            continue
        offset[start] = 0
        placed = [start]
        while True:
            choices = [
                (min(edges[a, b]), placed.index(a), b)
                for a in placed
                for b in ranks
                if b not in offset and (a, b) in edges
            ]
            if not choices:
                break
            rated, at, new = min(choices)
            median = lower_median(edges[placed[at], new][rated])
            offset[new] = offset[placed[at]] + (0 if abs(median) <= 20_000 else median)
            placed.append(new)
    return offset


def figures(documents: list[dict[str, Any]], world: int) -> dict[str, Any]:
    """The figures of one round, by the keys of the JSON document."""
    files = sorted((load(d) for d in documents), key=lambda f: f["rank"])
    ranks = [f["rank"] for f in files]
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for f in files:
        for e in f["events"]:
            groups[e["group"]].append(e)
    how, entries = {}, []
    for key in sorted(groups):
        how[key], found = match(groups[key])
        entries += found
    offset = clocks(entries, ranks)
    windows = {}
    for f in files:
        for e in f["events"]:
            e["start"] -= offset[f["rank"]]
            e["end"] -= offset[f["rank"]]
        for name in ("computation", "copy"):
            f[name] = [(a - offset[f["rank"]], b - offset[f["rank"]]) for a, b in f[name]]
        spans = [*f["computation"], *f["copy"], *((e["start"], e["end"]) for e in f["events"])]
        windows[f["rank"]] = min(a for a, _ in spans), max(b for _, b in spans)
    common = max(a for a, _ in windows.values()), min(b for _, b in windows.values())
    by_rank = {f["rank"]: f for f in files}
    for entry in entries:
        split = level(entry) is not None and common[1] > common[0]
        arrival = max(e["start"] for e in entry)
        for e in entry:
            e["split"] = split
            e["wait"] = max(0, min(arrival, e["end"]) - e["start"]) if split else 0
    spreads = [(level(x), max(e["end"] for e in x) - min(e["end"] for e in x)) for x in entries if x[0]["split"]]
    best = [s for rated, s in spreads if rated == 0] or [s for _, s in spreads]
    uncertainty = max(1000, lower_median(best)) if best else 1000
    owners = {r: segments(by_rank[r], windows[r]) for r in ranks}
    missing = world - len(ranks)
    collectives = [
        entry_figures(entry, entries, by_rank, owners, common[0], uncertainty, set(ranks), missing) for entry in entries
    ]
    of_ranks = {str(r): rank_figures(r, owners[r], windows[r], offset[r], entries, collectives, missing) for r in ranks}
    return {
        "world_size": world, "ranks_present": ranks, "ranks_missing": missing, "matched_by": how,
        "common_window_ns": max(common[1] - common[0], 0), "clock_uncertainty_ns": uncertainty,
        "ranks": of_ranks,
        "collectives": collectives,
    }  # fmt: skip


def segments(f: dict[str, Any], window: Span) -> list[tuple[int, int, str]]:
    """The owner of every stretch of a window, by priority."""
    split = [e for e in f["events"] if e["split"]]
    sets = (
        ("computation", f["computation"]),
        ("transfer", [(e["start"] + e["wait"], e["end"]) for e in split]),
        ("unsplit", [(e["start"], e["end"]) for e in f["events"] if not e["split"]]),
        ("wait", [(e["start"], e["start"] + e["wait"]) for e in split]),
        ("copy", f["copy"]),
    )
    cuts = sorted({*window, *(t for _, spans in sets for span in spans for t in span)})
    cuts = [t for t in cuts if window[0] <= t <= window[1]]
    return [
        (a, b, next((name for name, spans in sets if inside(a, spans)), "idle")) for a, b in itertools.pairwise(cuts)
    ]


def parts(owned: list[tuple[int, int, str]], low: int, high: int) -> dict[str, int]:
    found = dict.fromkeys(PARTS, 0)
    for a, b, owner in owned:
        found[owner] += max(0, min(b, high) - max(a, low))
    return found


def entry_figures(entry: Any, entries: Any, by_rank: Any, owners: Any, common: int, uncertainty: int,
                  present: set[int], missing: int) -> dict[str, Any]:  # fmt: skip
    ends, starts = [e["end"] for e in entry], [e["start"] for e in entry]
    kinds = {e["kind"] for e in entry}
    first = entry[0]
    absent = sorted(set(first["members"]) - present)
    found: dict[str, Any] = {
        "group": first["group"], "index": first["index"], "kind": first["kind"], "ranks": [e["rank"] for e in entry],
        "missing": absent, "split": first["split"], "end_spread_ns": max(ends) - min(ends),
    }  # fmt: skip
    if len(kinds) > 1 and level(entry) is None:
        found["mismatch"] = sorted(kinds)
    if not first["split"]:
        return found
    arrival = max(starts)
    last = min(e["rank"] for e in entry if e["start"] == arrival)
    others = [e for e in entry if e["rank"] != last]
    lead = arrival - max(e["start"] for e in others)
    before = {}
    for e in entry:
        since = common
        for other in entries[: entries.index(entry)]:
            mine = [o for o in other if o["rank"] == e["rank"] and o["group"] == e["group"]]
            if mine and blocking(other, by_rank):
                since = mine[0]["end"]
        before[e["rank"]] = parts(owners[e["rank"]], since, max(e["start"], since))
    excess = {p: before[last][p] - lower_median([before[e["rank"]][p] for e in others]) for p in PARTS}
    inherited = min(lead, max(0, excess["wait"]))
    found |= {
        "last": last, "last_arrival_ns": arrival, "lead_ns": lead, "decided": lead > uncertainty,
        "data_ns": max(ends) - arrival, "early_end_ns": max(0, arrival - min(ends)),
        "wait_ns": {str(e["rank"]): e["wait"] for e in entry},
        "transfer_ns": {str(e["rank"]): e["end"] - e["start"] - e["wait"] for e in entry},
        "exposed_wait_ns": {str(e["rank"]): hidden(by_rank[e["rank"]], e) for e in entry},
        "before_ns": before[last], "excess_ns": excess,
        "inherited_ns": None if missing else inherited, "own_ns": None if missing else lead - inherited,
        "_own": lead - inherited,
    }  # fmt: skip
    size = SIZES[first["dtype"]] * max(e["nout"] if first["kind"] == "all_gather" else e["nin"] for e in entry)
    time, n = max(ends) - arrival, len(first["members"])
    up, down = (2 * (n - 1), n) if first["kind"] == "all_reduce" else (n - 1, n)
    up, down = (1, 1) if first["kind"] in ("send", "recv", "barrier") else (up, down)
    if not absent and time > 0:
        found["busbw_bytes_per_s"] = size * 10**9 * up // (time * down)
    return found


def hidden(f: dict[str, Any], e: dict[str, Any]) -> int:
    """The wait of a kernel that no computation covers."""
    low, high = e["start"], e["start"] + e["wait"]
    cuts = sorted({low, high, *(t for span in f["computation"] for t in span if low <= t <= high)})
    return sum(b - a for a, b in itertools.pairwise(cuts) if not inside(a, f["computation"]))


def blocking(entry: Any, by_rank: Any) -> bool:
    return bool(entry[0]["split"]) and not any(inside(e["end"] - 1, by_rank[e["rank"]]["computation"]) for e in entry)


def rank_figures(rank: int, owned: Any, window: Span, offset: int, entries: Any, collectives: Any,
                 missing: int) -> dict[str, Any]:  # fmt: skip
    whole = parts(owned, *window)
    mine = [e for entry in entries for e in entry if e["rank"] == rank]
    last = [c for c in collectives if c.get("last") == rank]
    decided = [c for c in last if c["decided"]]
    others = [(c, r) for c in last for r in c["wait_ns"] if r != str(rank)]
    return {
        "clock_offset_ns": offset, "window_ns": window[1] - window[0], "window_start_ns": window[0],
        "computation_ns": whole["computation"], "exposed_transfer_ns": whole["transfer"],
        "exposed_unsplit_ns": whole["unsplit"], "exposed_wait_ns": whole["wait"], "exposed_copy_ns": whole["copy"],
        "exposed_communication_ns": whole["transfer"] + whole["unsplit"] + whole["wait"], "idle_ns": whole["idle"],
        "collectives": len(mine), "wait_ns": sum(e["wait"] for e in mine),
        "unsplit_ns": sum(e["end"] - e["start"] for e in mine if not e["split"]),
        "times_last": len(last), "times_last_decided": len(decided),
        "caused_wait_ns": sum(c["wait_ns"][r] for c, r in others),
        "caused_exposed_wait_ns": sum(c["exposed_wait_ns"][r] for c, r in others),
        "alone_ns": sum(c["lead_ns"] for c in decided),
        "own_ns": None if missing else sum(c["_own"] for c in decided),
        "late_because_ns": {p: sum(c["excess_ns"][p] for c in decided) for p in PARTS} if decided else {},
    }  # fmt: skip
