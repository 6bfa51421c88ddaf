"""All questions that a report answers, each by the name that it has in Python and in JSON."""

from __future__ import annotations

from functools import partial
from typing import Any

from analyze.guard import Guard
from analyze.metrics.alignment import QUESTION as ALIGNMENT
from analyze.metrics.blocking_calls import QUESTION as BLOCKING_CALLS
from analyze.metrics.device_time import DEVICES, HEADLINE
from analyze.metrics.fusion import QUESTION as FUSION
from analyze.metrics.idle import QUESTION as GAPS
from analyze.metrics.launches import QUESTION as LAUNCHES
from analyze.metrics.lead import QUESTION as LEAD
from analyze.metrics.memory import QUESTION as MEMORY
from analyze.metrics.modules import QUESTION as MODULES
from analyze.metrics.op_categories import QUESTION as OP_CATEGORIES
from analyze.metrics.ops import QUESTION as OPS
from analyze.metrics.overlap import QUESTION as OVERLAP
from analyze.metrics.precision import QUESTION as PRECISION
from analyze.metrics.quality.device_records import QUESTION as ZERO_SHARE
from analyze.metrics.quality.file_notices import QUESTION as FILE_NOTICES
from analyze.metrics.quality.recorded_run import QUESTION as RECORDED
from analyze.metrics.quality.trust import QUESTION as TRUST
from analyze.metrics.question import Answers, Question
from analyze.metrics.roofline import QUESTION as ROOFLINE
from analyze.metrics.starvation import QUESTION as STARVATION
from analyze.metrics.step_ledgers import ACTIVITY_TIMES
from analyze.metrics.step_ledgers import QUESTION as STEP_LEDGERS
from analyze.metrics.steps import QUESTION as STEPS
from analyze.metrics.symptoms import QUESTION as SYMPTOMS
from analyze.metrics.whatif.savings import QUESTION as SAVINGS
from analyze.metrics.work import CATEGORIES, KERNELS
from analyze.notices import Notice


def _notices(answers: Answers) -> tuple[Notice, ...]:
    """What is odd in the file, then in the answers; one that raises costs its own."""
    guard, found = Guard(), answers.ask(FILE_NOTICES)
    odd = guard.make_or("notices", lambda: tuple(found), ())
    own = (guard.make_or(one.key, partial(_own_notices, one, answers), ()) for one in QUESTIONS)
    return (*odd, *(notice for notices in own for notice in notices))


def _own_notices(question: Question[Any], answers: Answers) -> tuple[Notice, ...]:
    return tuple(question.notices(answers))


class Measures(Answers):
    """What was measured of a selection, each when it is first asked for; times in integer nanoseconds.

    A new question is one module with its `QUESTION`, and one line here. The order is that of the report's sections.
    """

    trust = TRUST
    recorded = RECORDED
    devices = DEVICES
    categories = CATEGORIES
    kernels = KERNELS
    op_categories = OP_CATEGORIES
    gaps = GAPS
    launches = LAUNCHES
    blocking_calls = BLOCKING_CALLS
    overlap = OVERLAP
    steps = STEPS
    step_ledgers = STEP_LEDGERS
    activity_times = ACTIVITY_TIMES
    lead = LEAD
    ops = OPS
    memory = MEMORY
    precision = PRECISION
    roofline = ROOFLINE
    fusion = FUSION
    modules = MODULES
    headline = HEADLINE
    alignment = ALIGNMENT
    symptoms = SYMPTOMS
    starvation = STARVATION
    zero_share = ZERO_SHARE
    savings = SAVINGS
    notices = Question("notices", _notices)


QUESTIONS: tuple[Question[Any], ...] = tuple(one for one in vars(Measures).values() if isinstance(one, Question))
