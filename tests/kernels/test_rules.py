"""Each rule's examples are its tests; labelled and public names show whether the rules mean something."""

from __future__ import annotations

import re

import pytest

from analyze.kernels.categories import NAMES
from analyze.kernels.classification import TABLE, classify_name
from analyze.kernels.literals import required_literals
from analyze.kernels.names import parse
from analyze.kernels.rule import NameRule
from analyze.kernels.rules import RULES
from tests.kernels.labels import LABELS, VIT_NAMES, read_labels, score
from tests.kernels.public_names import PUBLIC_NAMES

needs_labels = pytest.mark.skipif(not LABELS.exists(), reason="labelled names are kept outside the repository")
EXAMPLES = [pytest.param(rule, example, id=example[:80]) for rule in RULES for example in rule.examples]


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_example_is_caught_by_its_own_rule(rule: NameRule, example: str) -> None:
    assert TABLE.match(parse(example)) is rule


def test_every_rule_is_well_formed() -> None:
    assert len(set(RULES)) == len(RULES)
    for rule in RULES:
        assert rule.examples
        assert rule.category in NAMES
        re.compile(rule.pattern)


def test_every_category_that_a_name_can_have_has_a_rule() -> None:
    assert {rule.category for rule in RULES} == set(NAMES)


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("gemv", {"gemv"}),
        ("gemv|matmul", {"gemv", "matmul"}),
        ("soft_?max", {"soft"}),
        (r"(^|_)(topk|sort)(_|$)", {"topk", "sort"}),
        (r"cast_\w*fp8", {"cast_"}),
        (r"^(?!.*gemm)quant", {"quant"}),
        (r"(?=.*_mean_)(?=.*_pow(_|$))", {"_mean_"}),
        (r"(?<!fb)gemm", {"gemm"}),
        ("ab+c", {"ab"}),
        ("a+bc", {"bc"}),
        ("a+b[c]", set()),
        ("(quant)?", set()),
        ("quant|.", set()),
        ("[abc]def{2}g", {"def"}),
        ("de+[f]g", {"de"}),
    ],
)
def test_required_literals(pattern: str, literals: set[str]) -> None:
    assert required_literals(pattern) == literals


def test_table_finds_the_rule_that_trying_each_in_turn_finds() -> None:
    names = [name for listed in PUBLIC_NAMES.values() for name in listed]
    names += [label.name for label in read_labels()] if LABELS.exists() else []
    for name in names:
        kernel = parse(name)
        assert TABLE.match(kernel) is next((rule for rule in RULES if rule.matches(kernel)), None)


def test_names_from_public_sources() -> None:
    wrong = {
        name: (classify_name(name).category, category)
        for category, names in PUBLIC_NAMES.items()
        for name in names
        if classify_name(name).category != category
    }
    assert not wrong


@needs_labels
def test_labelled_names() -> None:
    scores = score(read_labels())
    assert scores.lenient >= 0.98
    assert scores.lenient_us >= 0.99
    assert scores.precision >= 0.97
    assert scores.tensor_core >= 0.97


@needs_labels
def test_names_of_a_vision_transformer_are_all_right() -> None:
    scores = score(read_labels(VIT_NAMES))
    assert (scores.strict, scores.precision, scores.tensor_core) == (1, 1, 1)


@needs_labels
def test_no_collective_is_missed_and_none_invented() -> None:
    """Communication decides the device time ledger."""
    for label in read_labels():
        is_communication = classify_name(label.name).category == "communication"
        if "communication" not in label.accepted or label.category == "communication":
            assert is_communication == (label.category == "communication"), label.name
