"""Which device an activity ran on, where its row does not say."""

from __future__ import annotations

import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from analyze.notices import Notice
from analyze.trace.programs import Programs
from analyze.units import plural

_SHOWN = 40


class Placed(Struct, frozen=True):
    """Activities that all have a device.

    Attributes:
        activities: rows of schema `ACTIVITIES`.
        programs: whose they are, where the file holds several programs.
        lost: rows without a usable device, where several come into question; they are left out.
        notices: what was done.
    """

    activities: pl.DataFrame
    programs: Programs | None
    lost: int = 0
    notices: tuple[Notice, ...] = ()


def place_on_devices(activities: pl.DataFrame, programs: Programs | None, listed: tuple[int, ...]) -> Placed:
    """Give activities without a usable device number the only device that there is.

    Args:
        activities: rows of schema `ACTIVITIES`.
        programs: whose they are.
        listed: device numbers that the document's metadata list.
    """
    missing = activities["device"].null_count()
    if not missing:
        return Placed(activities, programs)
    known = activities["device"].drop_nulls().unique().to_list() or list(listed)
    if len(known) == 1:
        what = plural(missing, "activity names", "activities name")
        text = f"{what} no usable device; the only one there is, {known[0]}, is taken."
        placed = activities.with_columns(pl.col("device").fill_null(known[0]))
        return Placed(placed, programs, 0, (Notice("device-assumed", text, missing),))
    kept = activities["device"].is_not_null()
    name = str(activities.filter(~kept)["name"][0])[:_SHOWN]
    if programs is not None:
        programs = replace(programs, of_activity=programs.of_activity[kept.to_numpy()])
    what = plural(missing, "activity names", "activities name")
    text = f"{what} no usable device, such as {name!r}: nothing says which it is, and they count in no figure."
    return Placed(activities.filter(kept), programs, missing, (Notice("device-unknown", text, missing),))
