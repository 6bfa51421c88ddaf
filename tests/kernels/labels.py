"""The labelled kernel names that the rules are scored on, where they are present."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from analyze.kernels import KernelKind, classify_name

SHARED = Path(os.environ.get("GPULEDGER_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))
LABELS = SHARED / "kernels" / "labels.tsv"
VIT_NAMES = SHARED / "kernels" / "vit_seed_names.tsv"
TENSOR_CORE = {"yes": True, "no": False, "unknown": None}


@dataclass(frozen=True)
class Label:
    """One labelled name; `accepted` are the category and what another expert could have said."""

    name: str
    category: str
    accepted: frozenset[str]
    precision: str
    tensor_core: bool | None
    family: str
    total_us: float


@dataclass(frozen=True)
class Scores:
    """Shares of names, and of time without communication, that were classified as labelled."""

    names: int
    strict: float
    lenient: float
    strict_us: float
    lenient_us: float
    precision: float
    tensor_core: float


def read_labels(path: Path = LABELS) -> list[Label]:
    """Read a file of labelled names."""
    return [_label(row) for row in _rows(path)]


def score(labels: Iterable[Label]) -> Scores:
    """Classify labelled names and compare."""
    pairs = [(label, classify_name(label.name)) for label in labels]
    computing = [(label, kind) for label, kind in pairs if label.category != "communication"]
    known = [(label, kind) for label, kind in pairs if label.precision != "unknown"]
    return Scores(
        names=len(pairs),
        strict=_share(kind.category == label.category for label, kind in pairs),
        lenient=_share(kind.category in label.accepted for label, kind in pairs),
        strict_us=_share_of_time((label, kind.category == label.category) for label, kind in computing),
        lenient_us=_share_of_time((label, kind.category in label.accepted) for label, kind in computing),
        precision=_share(kind.precision == label.precision for label, kind in known),
        tensor_core=_share(kind.tensor_core is label.tensor_core for label, kind in pairs),
    )


def confusions(labels: Iterable[Label]) -> Iterator[tuple[Label, KernelKind]]:
    """Give the names whose category is not the label's."""
    for label in labels:
        kind = classify_name(label.name)
        if kind.category != label.category:
            yield label, kind


def _rows(path: Path) -> Iterator[Mapping[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


def _label(row: Mapping[str, str]) -> Label:
    alternatives = filter(None, row.get("alt_categories", "").split("|"))
    return Label(
        name=row["name"],
        category=row["category"],
        accepted=frozenset({row["category"], *alternatives}),
        precision=row["precision"],
        tensor_core=TENSOR_CORE[row["tensor_core"]],
        family=row.get("family", ""),
        total_us=float(row.get("total_us") or 0),
    )


def _share(hits: Iterable[bool]) -> float:
    listed = list(hits)
    return sum(listed) / len(listed) if listed else 1.0


def _share_of_time(hits: Iterable[tuple[Label, bool]]) -> float:
    listed = list(hits)
    total = sum(label.total_us for label, _ in listed)
    return sum(label.total_us for label, is_hit in listed if is_hit) / total if total else 1.0
