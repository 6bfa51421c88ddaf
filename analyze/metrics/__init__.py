"""Intervals become numbers: one file per question, each with its measure and the section that shows it."""

from typing import TYPE_CHECKING

from analyze.lazy import lazy_names

if TYPE_CHECKING:
    from analyze.metrics.device_time import DeviceTime
    from analyze.metrics.idle import Gap
    from analyze.metrics.launches import Launches
    from analyze.metrics.measures import QUESTIONS, Measures
    from analyze.metrics.question import Question
    from analyze.metrics.steps import Step, step_times
    from analyze.metrics.work import CategoryTime
    from analyze.settings import OpsView

__all__ = [
    "QUESTIONS",
    "CategoryTime",
    "DeviceTime",
    "Gap",
    "Launches",
    "Measures",
    "OpsView",
    "Question",
    "Step",
    "step_times",
]

_PLACES = {
    "CategoryTime": "analyze.metrics.work",
    "DeviceTime": "analyze.metrics.device_time",
    "Gap": "analyze.metrics.idle",
    "Launches": "analyze.metrics.launches",
    "Measures": "analyze.metrics.measures",
    "OpsView": "analyze.settings",
    "QUESTIONS": "analyze.metrics.measures",
    "Question": "analyze.metrics.question",
    "Step": "analyze.metrics.steps",
    "step_times": "analyze.metrics.steps",
}

__getattr__ = lazy_names(__name__, _PLACES)
