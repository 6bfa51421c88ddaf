"""What a shell offers behind Tab: ids of rules, words, gates, and the ranges of the trace that is named already."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

_READ_BYTES = 1 << 26  # of a trace: as much as is unpacked in well under a second
_RANGE = re.compile(rb'"cat"\s*:\s*"(?:gpu_)?user_annotation"\s*,\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")')
_STEP = "ProfilerStep#"


def rules(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Rules with a limit, as RULE=."""
    from analyze.findings import RULES

    return _items(((f"{rule.id}=", rule.question) for rule in RULES if rule.limit is not None), typed)


def words(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Rules and words that can be explained."""
    from analyze.findings import RULES
    from analyze.report.glossary import terms

    named = [(rule.id, rule.question) for rule in RULES]
    return _items(
        (*named, ("verdict", "Where does the window go?"), *((term.name, "") for term in terms().values())), typed
    )


def gates(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """What a gate can begin with."""
    from analyze.findings import RULES
    from analyze.kernels.categories import NAMES
    from analyze.report.headline_metrics import METRICS

    found = [(name, f"{metric.unit}, {metric.better} is better") for name, metric in METRICS.items()]
    found += [(f"finding:{name}", "") for name in ("high", "medium", "low")]
    found += [(f"finding:{rule.id}", rule.question) for rule in RULES]
    found += [(f"category:{name}", "") for name in NAMES]
    return _items(found, typed)


def ranges(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """User ranges of the traces that are named already."""
    given = [ctx.params.get("trace"), *(ctx.params.get("paths") or ()), *ctx.args]  # not all is parsed yet
    names: dict[str, None] = {}
    for path in given:
        if isinstance(path, str) and Path(path).is_file():
            names |= dict.fromkeys(_ranges_of(path))
    return _items(((name, "") for name in names), typed)


def _ranges_of(path: str) -> Iterable[str]:
    import orjson

    from analyze.errors import GpuledgerError
    from analyze.trace.source import Source

    try:
        data, size = [], 0
        for block in Source(path).blocks():
            data.append(bytes(block))
            size += len(block)
            if size > _READ_BYTES:
                break
        found = dict.fromkeys(match[1] for match in _RANGE.finditer(b"".join(data)))
        names = [orjson.loads(name) for name in found]
    except (GpuledgerError, OSError, ValueError):
        return ()
    return (name for name in names if not name.startswith(_STEP) and name.isprintable())


def _items(found: Iterable[tuple[str, Any]], typed: str) -> list[CompletionItem]:
    once = dict(reversed(list(found)))  # the first of one name counts
    return [CompletionItem(name, help=once[name] or None) for name in reversed(once) if name.startswith(typed)]
