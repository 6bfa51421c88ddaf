"""Intervals become numbers: one file per question, each with its measure and the section that shows it."""

from analyze.metrics.device_time import DeviceTime
from analyze.metrics.idle import Gap
from analyze.metrics.launches import Launches
from analyze.metrics.measures import QUESTIONS, Measures
from analyze.metrics.question import Question
from analyze.metrics.steps import Step, step_times
from analyze.metrics.work import Category
from analyze.settings import OpsView

__all__ = [
    "QUESTIONS",
    "Category",
    "DeviceTime",
    "Gap",
    "Launches",
    "Measures",
    "OpsView",
    "Question",
    "Step",
    "step_times",
]
