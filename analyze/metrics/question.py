"""A question to a trace: what answers it, and what a report shows of the answer. Each is declared once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from msgspec import Struct

from analyze.blocks import Section
from analyze.guard import Guard
from analyze.notices import Notice, NotMeasured
from analyze.settings import Definitions, OpsView
from analyze.timeline import Scope, select
from analyze.trace import Trace

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


def _nothing(_: Answers) -> Iterator[Any]:
    return iter(())


class Answers:
    """The answers to all questions about one selection of a trace. Each is found when it is first asked for.

    Attributes:
        trace: the trace.
        definitions: limits and list lengths.
        selection: the part of the trace that is accounted for.
        view: how ops are sorted and grouped.
    """

    def __init__(self, trace: Trace, definitions: Definitions, scope: Scope, view: OpsView | None = None) -> None:
        """Select the part of the trace; raises `SelectionError` where there is no such part."""
        self.trace = trace
        self.definitions = definitions
        self.selection = select(trace, scope)
        self.view = view or OpsView()
        self._guard = Guard()
        self._given: dict[str, Any] = {}
        self._found: dict[str, Any] = {}
        self._source: Callable[[Question[Any]], Any] | None = None  # in place of measuring

    def ask(self, question: Question[T]) -> T:
        """The answer, or `Absent` where finding it raised: what asks that for more raises `AbsentError`."""
        if question.key not in self._found:
            self._found[question.key] = self._guard.make(question.key, lambda: self._answer(question))
        answer: T = self._found[question.key]
        return answer

    def _answer(self, question: Question[T]) -> T:
        if self._source is None:
            return question.measure(self)
        answer: T = self._source(question)
        return answer

    def given(self, **answers: Any) -> Self:
        """The same with some answers replaced; what else is asked for is found from these."""
        other = copy(self)
        other._given = {**self._given, **answers}
        other._guard, other._found, other._source = Guard(), {**other._given}, None
        return other

    def mapped(self, how: Callable[[Any], Any]) -> Self:
        """The same with a function applied to each answer."""
        other = copy(self)
        other._guard, other._found = Guard(), {}
        other._source = lambda question: how(self.ask(question))
        return other

    @property
    def absent(self) -> tuple[NotMeasured, ...]:
        """What was asked for and could not be found, for an internal error."""
        return self._guard.not_measured()


class Question(Struct, Generic[T], frozen=True, eq=False):
    """One question to a trace. As an attribute of `Measures` it is the answer.

    Attributes:
        key: its name in `Measures` and, if it is published, in the JSON report and its schema.
        measure: finds the answer.
        answer: the answer's type in the JSON report; None where it is not published.
        shown: the part of an answer that the JSON report holds.
        section: the section that shows it, None where it has none of its own.
        without_device: the section is printed for traces without device activity too.
        on_screen: a report on one screen shows something of the section.
        notices: what is odd in the answer.
        not_measured: what the file cannot answer of it.
    """

    key: str
    measure: Callable[[Answers], T]
    answer: Any = None
    shown: Callable[[T, Definitions], Any] = lambda answer, _: answer
    section: Callable[[Answers], Section | None] | None = None
    without_device: bool = False
    on_screen: bool = True
    notices: Callable[[Answers], Iterable[Notice]] = _nothing
    not_measured: Callable[[Answers], Iterable[NotMeasured]] = _nothing

    def __set_name__(self, owner: type, name: str) -> None:
        """One vocabulary: the attribute is the key."""
        if name != self.key:
            raise TypeError(f"{owner.__name__}.{name} is the question {self.key!r}")

    @overload
    def __get__(self, answers: None, owner: type) -> Question[T]: ...

    @overload
    def __get__(self, answers: Answers, owner: type) -> T: ...

    def __get__(self, answers: Answers | None, owner: type) -> Question[T] | T:
        """The answer to it."""
        return self if answers is None else answers.ask(self)
