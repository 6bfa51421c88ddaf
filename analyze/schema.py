"""The declared columns of every public frame: type, unit (in the name) and one line of meaning."""

from __future__ import annotations

import polars as pl
from msgspec import Struct


class Field(Struct, frozen=True):
    """One column of a frame.

    Attributes:
        name: with its unit as suffix where it has one.
        dtype: Polars type.
        meaning: one line.
    """

    name: str
    dtype: pl.DataType | type[pl.DataType]
    meaning: str


Schema = tuple[Field, ...]

_INT = pl.Int64
_NAME = pl.Categorical

_TIMES: Schema = (
    Field("start_ns", _INT, "start, integer nanoseconds on the file's own clock"),
    Field("dur_ns", _INT, "duration; null where the row has none, negative durations are read as 0"),
)
_NAMED: Schema = (*_TIMES, Field("name", _NAME, "name as recorded, damaged bytes replaced"))
_THREAD: Schema = (Field("thread", pl.UInt32, "row of `threads`: one (pid, tid) pair"),)

THREADS: Schema = (
    Field("thread", pl.UInt32, "row number"),
    Field("pid", pl.String, "process as recorded"),
    Field("tid", pl.String, "thread as recorded"),
    Field("process", _NAME, "process group of a merged file, empty otherwise"),
)
OPS: Schema = (
    *_NAMED,
    *_THREAD,
    Field("external_id", _INT, "the op's id, null where not recorded"),
    Field("sequence", _INT, "autograd sequence number, null outside training"),
    Field("forward_thread", _INT, "of backward ops: the thread of their forward op, as the profiler numbers it"),
    Field("input_dims", _NAME, "input shapes as JSON text, null without record_shapes"),
    Field("input_types", _NAME, "input types as JSON text, null without record_shapes"),
    Field("concrete_inputs", _NAME, "values of what is no tensor as JSON text, of convolutions and attention only"),
)
RUNTIME: Schema = (
    *_NAMED,
    *_THREAD,
    Field("correlation", _INT, "joins the call with its activities; null where absent or 0"),
    Field("external_id", _INT, "op id or correlation, depending on the PyTorch version"),
)
ACTIVITIES: Schema = (
    *_NAMED,
    Field("kind", _NAME, "kernel, memcpy or memset, from the row's category"),
    Field("process", _NAME, "process group of a merged file, empty otherwise"),
    Field("device", _INT, "args.device, else pid"),
    Field("stream", _INT, "args.stream, else tid; null where neither is a number"),
    Field("correlation", _INT, "joins the activity with its launch; null where absent or 0"),
    Field("external_id", _INT, "op id or correlation, depending on the PyTorch version"),
    Field("size_bytes", _INT, "bytes copied or set, null for kernels"),
    Field("grid", _NAME, "grid as JSON text"),
    Field("block", _NAME, "block as JSON text"),
    Field("registers", _INT, "registers per thread"),
    Field("shared_memory_bytes", _INT, "shared memory per block"),
    Field("graph", _INT, "CUDA graph id, null outside graphs and where not recorded"),
    Field("collective", _NAME, "which collective, as the process group names it; null on other rows"),
    Field("in_elements", _INT, "elements that this rank gives to the collective"),
    Field("out_elements", _INT, "elements that this rank gets from it"),
    Field("element_type", _NAME, "type of the elements as c10::ScalarType names it: Float, BFloat16"),
    Field("group", _NAME, "process group of the collective, by its name; null where not recorded"),
    Field("group_description", _NAME, "what the program calls the group: mesh_tp; several groups can share it"),
    Field("group_ranks", _NAME, "ranks of the group as JSON text, as recorded: long lists are cut by the writer"),
    Field("group_size", _INT, "ranks in the group"),
    Field("group_sequence", _INT, "number of the collective in its group, the same on all ranks"),
    Field("source_rank", _INT, "sending rank, of send and recv only"),
    Field("target_rank", _INT, "receiving rank, of send and recv only"),
)
COLLECTIVE_OPS: Schema = (
    Field("external_id", _INT, "the op's id, null where not recorded"),
    *ACTIVITIES[-11:],
)
LINKED: Schema = (
    *ACTIVITIES,
    Field("recorded_name", _NAME, "the name in the file: `name` is demangled where that is a mangled C++ name"),
    Field("end_ns", _INT, "start plus duration; null where not timed"),
    Field("timed", pl.Boolean, "has a duration and is not the 0/0 row of a record that was not collected"),
    Field("launch", pl.UInt32, "row of `runtime`: the API call with the same correlation, null without one"),
    Field("launch_start_ns", _INT, "start of that call"),
    Field("launch_end_ns", _INT, "end of that call"),
    Field("launch_thread", pl.UInt32, "thread of that call"),
    Field("op", _NAME, "innermost op on the launching thread around the call, null without one"),
    Field("category", _NAME, "what the activity computes: kernels.categories.NAMES"),
)
LAUNCHES: Schema = (
    Field("launch", pl.UInt32, "row of `runtime`"),
    Field("name", _NAME, "API call"),
    Field("thread", pl.UInt32, "calling thread"),
    Field("start_ns", _INT, "start of the call"),
    Field("end_ns", _INT, "end of the call"),
    Field("activities", pl.UInt32, "how many activities it started; more than one for graphs"),
    Field("device", _INT, "device of its first activity"),
    Field("stream", _INT, "stream of its first activity"),
    Field("first_start_ns", _INT, "start of its first activity"),
    Field("latency_ns", _INT, "first activity start minus call start; null under skew"),
    Field("queue_time_ns", _INT, "first activity start minus call end, not below 0; null under skew"),
    Field("idle_stream", pl.Boolean, "every earlier activity on the stream had ended when the call began"),
)
RANGES: Schema = (*_NAMED, *_THREAD)
FRAMES: Schema = (
    *_NAMED,
    *_THREAD,
    Field("python_id", _INT, "id of the Python frame"),
    Field("parent_id", _INT, "id of its caller, null at the root"),
)
OVERHEAD: Schema = _NAMED
SPANS: Schema = _NAMED
MEMORY: Schema = (
    Field("time_ns", _INT, "instant of the allocation or free"),
    Field("thread", pl.UInt32, "thread that allocated or freed"),
    Field("size_bytes", _INT, "allocated bytes, negative for a free"),
    Field("address", _INT, "address, two's complement above 2^63"),
    Field("allocated_bytes", _INT, "allocated on the device after the event"),
    Field("reserved_bytes", _INT, "reserved on the device after the event"),
    Field("device_type", _INT, "0 CPU, 1 CUDA, as c10::DeviceType"),
    Field("device", _INT, "device index, -1 for the CPU"),
)
STEPS: Schema = (
    Field("name", _NAME, "range name, ProfilerStep#N"),
    Field("thread", pl.UInt32, "thread that holds the range"),
    Field("start_ns", _INT, "start of the range"),
    Field("end_ns", _INT, "end of the range"),
    Field("wall_ns", _INT, "distance to the next step's start; the range's own duration for the last"),
)


def dtypes(schema: Schema) -> dict[str, pl.DataType | type[pl.DataType]]:
    """Column names and types in order, as Polars takes them."""
    return {column.name: column.dtype for column in schema}


def empty(schema: Schema) -> pl.DataFrame:
    """A frame of the schema without rows."""
    return pl.DataFrame(schema=dtypes(schema))


def names(schema: Schema) -> list[str]:
    """Column names in order."""
    return [column.name for column in schema]
