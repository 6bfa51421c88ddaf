"""Print how well kernel names are classified: `python tests/benchmarks/kernel_labels.py`."""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from analyze.kernels import classify, classify_name
from analyze.kernels.classification import TABLE
from analyze.kernels.names import parse
from analyze.kernels.rule import NameRule
from analyze.kernels.table import RuleTable
from tests.kernels.labels import LABELS, SHARED, VIT_NAMES, Label, confusions, read_labels, score
from tests.kernels.public_names import PUBLIC_NAMES

DEVICE_CATEGORIES = {"kernel": None, "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
OLD_DEVICE_CATEGORIES = {"Kernel": None, "Memcpy": "memcpy", "Memset": "memset"}
# On a missing file there is nothing to print.
NO_LABELS = 2


def main() -> int:
    """Print every score."""
    if not LABELS.exists():
        print(f"no labelled names at {LABELS}; set GPULEDGER_SHARED to the folder that holds kernels/labels.tsv")
        return NO_LABELS
    labels = read_labels()
    _print_scores("labels.tsv", labels)
    _print_scores("vit_seed_names.tsv", read_labels(VIT_NAMES))
    _print_public()
    _print_confusions(labels)
    _print_left_out(labels)
    _print_speed(labels)
    _print_traces()
    return 0


def _print_scores(title: str, labels: list[Label]) -> None:
    scores = score(labels)
    print(f"{title}: {scores.names} names")
    print(f"  category, names            strict {scores.strict:7.2%}  lenient {scores.lenient:7.2%}")
    print(f"  category, time*            strict {scores.strict_us:7.2%}  lenient {scores.lenient_us:7.2%}")
    print(f"  precision, where labelled  {scores.precision:7.2%}")
    print(f"  tensor core                {scores.tensor_core:7.2%}")
    print("  * total_us without communication\n")


def _print_public() -> None:
    pairs = [(category, name) for category, names in PUBLIC_NAMES.items() for name in names]
    wrong = [(category, name) for category, name in pairs if classify_name(name).category != category]
    print(f"names from public sources: {1 - len(wrong) / len(pairs):.2%} of {len(pairs)}")
    print("  (95.4 % before the rules were mended on them)")
    for category, name in wrong:
        print(f"  {category} taken for {classify_name(name).category}: {name[:100]}")
    print()


def _print_confusions(labels: list[Label]) -> None:
    print("category differs from the label ('~': an accepted alternative)")
    for label, kind in confusions(labels):
        mark = "~" if kind.category in label.accepted else "!"
        print(f"  {mark} {label.category} taken for {kind.category} ({kind.family}): {label.name[:90]}")
    print("\nprecision differs where the label knows it")
    for label in labels:
        found = classify_name(label.name).precision
        if label.precision not in {"unknown", found}:
            print(f"  {label.precision} taken for {found}: {label.name[:100]}")
    print()


def _print_left_out(labels: list[Label]) -> None:
    """Score each family by the rules that other families support, or that none of the labelled names does."""
    print("leave one family out (rules disabled that only this family supports)")
    for title, key in (("family", _family), ("group of families", _group)):
        wrong = list(_wrong_when_left_out(labels, key))
        print(f"  by {title}: {1 - len(wrong) / len(labels):.2%} of {len(labels)} names, lenient")
        for group, count in Counter(key(label) for label in wrong).most_common(12):
            print(f"    {count:4d} {group}")
    print()


def _family(label: Label) -> str:
    return label.family


def _group(label: Label) -> str:
    return label.family.split(":")[0]


def _wrong_when_left_out(labels: list[Label], key: Callable[[Label], str]) -> Iterator[Label]:
    kernels = {label.name: parse(label.name) for label in labels}
    support: dict[NameRule, set[str]] = defaultdict(set)
    members: dict[str, list[Label]] = defaultdict(list)
    for label in labels:
        members[key(label)].append(label)
        rule = TABLE.match(kernels[label.name])
        if rule is not None:
            support[rule].add(key(label))
    for group, group_labels in members.items():
        table = RuleTable([rule for rule in TABLE.rules if support.get(rule) != {group}])
        for label in group_labels:
            rule = table.match(kernels[label.name])
            if (rule.category if rule else "other") not in label.accepted:
                yield label


def _print_speed(labels: list[Label]) -> None:
    names = [label.name for label in labels]
    classify_name.cache_clear()
    start = time.process_time()
    classify(names)
    print(f"speed: {(time.process_time() - start) / len(names) * 1e5:.1f} ms per 100 names\n")


def _print_traces() -> None:
    print("share of activity time in 'other', and in Triton names that tell nothing")
    shares = []
    for path in sorted((SHARED / "traces").glob("*.json.gz")):
        times = _time_by_category(path)
        total = sum(times.values())
        if total:
            shares.append(times["other"] / total)
            rest = times["triton_fused_other"] / total
            print(f"  {shares[-1]:7.2%} {rest:7.2%}  {path.name}  {_unrecognised(times)}")
    print(f"  mean {sum(shares) / len(shares):.2%}, highest {max(shares):.2%}")


def _time_by_category(path: Path) -> Counter[str]:
    with gzip.open(path) as file:
        content = json.load(file)
    times: Counter[str] = Counter()
    for event in content["traceEvents"] if isinstance(content, dict) else content:
        cat = event.get("cat", "")
        if cat in DEVICE_CATEGORIES or cat in OLD_DEVICE_CATEGORIES:
            copied = DEVICE_CATEGORIES.get(cat) or OLD_DEVICE_CATEGORIES.get(cat)
            times[copied or classify_name(event["name"]).category] += max(0, float(event.get("dur") or 0))
    return times


def _unrecognised(times: Counter[str]) -> str:
    total = sum(times.values())
    return ", ".join(f"{category} {time / total:.0%}" for category, time in times.most_common(4))


if __name__ == "__main__":
    sys.exit(main())
