"""Intervals become numbers: one file per question, each with its measure and the section that tells it."""

from analyze.metrics.blocking_calls import Stalls
from analyze.metrics.device_time import DeviceTime
from analyze.metrics.idle import Gap
from analyze.metrics.launches import Launches
from analyze.metrics.measures import Measures, measure
from analyze.metrics.ops import HostSide, OpsView
from analyze.metrics.steps import Step, step_times
from analyze.metrics.work import Category

__all__ = [
    "Category",
    "DeviceTime",
    "Gap",
    "HostSide",
    "Launches",
    "Measures",
    "OpsView",
    "Stalls",
    "Step",
    "measure",
    "step_times",
]
