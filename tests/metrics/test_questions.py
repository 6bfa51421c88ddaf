"""Every question is asked, under one name everywhere."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import analyze.metrics
import analyze.metrics.measures
from analyze.compare.json_schema import json_schema
from analyze.metrics import QUESTIONS, Measures, Question
from analyze.metrics.quality.file_notices import QUESTION as FILE_NOTICES


def test_every_module_that_asks_a_question_is_listed() -> None:
    modules = (name for _, name, _ in pkgutil.walk_packages(analyze.metrics.__path__, "analyze.metrics."))
    asked = {question for name in modules if (question := getattr(importlib.import_module(name), "QUESTION", None))}
    assert len(asked) > 15
    assert asked <= {*QUESTIONS, FILE_NOTICES}  # the notices of the file are part of `Measures.notices`


def test_the_attribute_the_key_and_the_schema_agree() -> None:
    assert all(getattr(Measures, question.key) is question for question in QUESTIONS)
    published = {question.key for question in QUESTIONS if question.answer is not None}
    assert published <= json_schema()["properties"].keys()
    assert {"devices", "launches", "blocking_calls", "categories", "kernels"} <= published


def test_a_question_under_another_name_is_refused() -> None:
    question: Question[int] = Question("here", lambda answers: 1)
    with pytest.raises(TypeError, match="is the question 'here'"):
        question.__set_name__(Measures, "there")


def test_an_answer_is_found_once_and_only_if_asked_for() -> None:
    found = []
    question: Question[int] = Question("x", lambda answers: found.append(1) or 5)  # type: ignore[func-returns-value]
    answers = object.__new__(Measures)
    answers._given, answers._found = {}, {}
    answers._guard = analyze.metrics.measures.Guard()
    answers._source = None
    assert found == []
    assert answers.ask(question) == answers.ask(question) == 5
    assert found == [1]
