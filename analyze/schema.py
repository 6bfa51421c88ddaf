"""The declared columns of every public frame: type, unit (in the name) and one line of meaning."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a frame.

    Attributes:
        name: with its unit as suffix where it has one.
        dtype: Polars type.
        meaning: one line.
    """

    name: str
    dtype: pl.DataType | type[pl.DataType]
    meaning: str


Schema = tuple[Column, ...]

_INT = pl.Int64
_NAME = pl.Categorical

_TIMES: Schema = (
    Column("start_ns", _INT, "start, integer nanoseconds on the file's own clock"),
    Column("dur_ns", _INT, "duration; null where the row has none, negative durations are read as 0"),
)
_NAMED: Schema = (*_TIMES, Column("name", _NAME, "name as recorded, damaged bytes replaced"))
_THREAD: Schema = (Column("thread", pl.UInt32, "row of `threads`: one (pid, tid) pair"),)

THREADS: Schema = (
    Column("thread", pl.UInt32, "row number"),
    Column("pid", pl.String, "process as recorded"),
    Column("tid", pl.String, "thread as recorded"),
    Column("process", _NAME, "process group of a merged file, empty otherwise"),
)
OPS: Schema = (
    *_NAMED,
    *_THREAD,
    Column("external_id", _INT, "the op's id, null where not recorded"),
    Column("sequence", _INT, "autograd sequence number, null outside training"),
    Column("forward_thread", _INT, "of backward ops: the thread of their forward op, as the profiler numbers it"),
    Column("input_dims", _NAME, "input shapes as JSON text, null without record_shapes"),
    Column("input_types", _NAME, "input types as JSON text, null without record_shapes"),
    Column("concrete_inputs", _NAME, "values of what is no tensor as JSON text, of convolutions and attention only"),
)
RUNTIME: Schema = (
    *_NAMED,
    *_THREAD,
    Column("correlation", _INT, "joins the call with its activities; null where absent or 0"),
    Column("external_id", _INT, "op id or correlation, depending on the PyTorch version"),
)
ACTIVITIES: Schema = (
    *_NAMED,
    Column("kind", _NAME, "kernel, memcpy or memset, from the row's category"),
    Column("process", _NAME, "process group of a merged file, empty otherwise"),
    Column("device", _INT, "args.device, else pid"),
    Column("stream", _INT, "args.stream, else tid; null where neither is a number"),
    Column("correlation", _INT, "joins the activity with its launch; null where absent or 0"),
    Column("external_id", _INT, "op id or correlation, depending on the PyTorch version"),
    Column("size_bytes", _INT, "bytes copied or set, null for kernels"),
    Column("grid", _NAME, "grid as JSON text"),
    Column("block", _NAME, "block as JSON text"),
    Column("registers", _INT, "registers per thread"),
    Column("shared_memory_bytes", _INT, "shared memory per block"),
    Column("graph", _INT, "CUDA graph id, null outside graphs and where not recorded"),
    Column("collective", _NAME, "which collective, as the process group names it; null on other rows"),
    Column("in_elements", _INT, "elements that this rank gives to the collective"),
    Column("out_elements", _INT, "elements that this rank gets from it"),
    Column("element_type", _NAME, "type of the elements as c10::ScalarType names it: Float, BFloat16"),
    Column("group", _NAME, "process group of the collective, by its name; null where not recorded"),
    Column("group_description", _NAME, "what the program calls the group: mesh_tp; several groups can share it"),
    Column("group_ranks", _NAME, "ranks of the group as JSON text, as recorded: long lists are cut by the writer"),
    Column("group_size", _INT, "ranks in the group"),
    Column("group_sequence", _INT, "number of the collective in its group, the same on all ranks"),
    Column("source_rank", _INT, "sending rank, of send and recv only"),
    Column("target_rank", _INT, "receiving rank, of send and recv only"),
)
COLLECTIVE_OPS: Schema = (
    Column("external_id", _INT, "the op's id, null where not recorded"),
    *ACTIVITIES[-11:],
)
LINKED: Schema = (
    *ACTIVITIES,
    Column("recorded_name", _NAME, "the name in the file: `name` is demangled where that is a mangled C++ name"),
    Column("end_ns", _INT, "start plus duration; null where not timed"),
    Column("timed", pl.Boolean, "has a duration and is not the 0/0 row of a record that was not collected"),
    Column("launch", pl.UInt32, "row of `runtime`: the API call with the same correlation, null without one"),
    Column("launch_start_ns", _INT, "start of that call"),
    Column("launch_end_ns", _INT, "end of that call"),
    Column("launch_thread", pl.UInt32, "thread of that call"),
    Column("op", _NAME, "innermost op on the launching thread around the call, null without one"),
    Column("category", _NAME, "what the activity computes: kernels.categories.NAMES"),
)
LAUNCHES: Schema = (
    Column("launch", pl.UInt32, "row of `runtime`"),
    Column("name", _NAME, "API call"),
    Column("thread", pl.UInt32, "calling thread"),
    Column("start_ns", _INT, "start of the call"),
    Column("end_ns", _INT, "end of the call"),
    Column("activities", pl.UInt32, "how many activities it started; more than one for graphs"),
    Column("device", _INT, "device of its first activity"),
    Column("stream", _INT, "stream of its first activity"),
    Column("first_start_ns", _INT, "start of its first activity"),
    Column("latency_ns", _INT, "first activity start minus call start; null under skew"),
    Column("queue_time_ns", _INT, "first activity start minus call end, not below 0; null under skew"),
    Column("idle_stream", pl.Boolean, "every earlier activity on the stream had ended when the call began"),
)
RANGES: Schema = (*_NAMED, *_THREAD)
FRAMES: Schema = (
    *_NAMED,
    *_THREAD,
    Column("python_id", _INT, "id of the Python frame"),
    Column("parent_id", _INT, "id of its caller, null at the root"),
)
OVERHEAD: Schema = _NAMED
SPANS: Schema = _NAMED
MEMORY: Schema = (
    Column("time_ns", _INT, "instant of the allocation or free"),
    Column("thread", pl.UInt32, "thread that allocated or freed"),
    Column("size_bytes", _INT, "allocated bytes, negative for a free"),
    Column("address", _INT, "address, two's complement above 2^63"),
    Column("allocated_bytes", _INT, "allocated on the device after the event"),
    Column("reserved_bytes", _INT, "reserved on the device after the event"),
    Column("device_type", _INT, "0 CPU, 1 CUDA, as c10::DeviceType"),
    Column("device", _INT, "device index, -1 for the CPU"),
)
STEPS: Schema = (
    Column("name", _NAME, "range name, ProfilerStep#N"),
    Column("thread", pl.UInt32, "thread that holds the range"),
    Column("start_ns", _INT, "start of the range"),
    Column("end_ns", _INT, "end of the range"),
    Column("wall_ns", _INT, "distance to the next step's start; the range's own duration for the last"),
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
