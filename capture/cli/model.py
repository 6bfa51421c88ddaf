"""`capture`: records a model that it builds itself."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

import click

from capture.cli.ending import ending_promptly, explained, naming_missing_packages
from capture.cli.options import RenamedOption
from capture.errors import SettingsError
from capture.settings import (
    COMPILE_MODES,
    DEFAULT_BATCH_SIZE,
    DEFAULT_ITERATIONS,
    DEFAULT_MODEL,
    PRECISIONS,
    Precision,
    Settings,
    check_amp,
    split_device,
)

_GROUPS: dict[str, tuple[str, ...]] = {
    "Model": ("model", "pretrained", "batch_size", "seed", "train", "loader"),
    "Arithmetic": (
        "precisions",
        "amp",
        "channels_last",
        "compile_model",
        "compile_mode",
        "cuda_graph",
        "cudnn_benchmark",
    ),
    "Measuring": ("warmup", "timed_steps", "repeat", "batch_sweep", "device"),
    "Trace": ("traced_steps", "stacks", "no_shapes", "no_memory_events"),
    "Memory": ("snapshot_steps", "snapshot_weights"),
    "Output": ("out", "force", "debug", "help", "version"),
}


class _Loaded(NamedTuple):
    """The parts of capture that need torch."""

    device: ModuleType
    output: ModuleType
    run: ModuleType
    sweep: ModuleType
    summary: ModuleType
    progress: ModuleType


class _GroupedCommand(click.Command):
    """Shows its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section per group."""
        records = {param.name: param.get_help_record(ctx) for param in self.get_params(ctx)}
        for heading, names in _GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([record for name in names if (record := records.get(name))])


class _BatchSizes(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    name = "N,N,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Read positive numbers separated by commas."""
        if isinstance(value, tuple):
            return value
        try:
            sizes = tuple(int(size) for size in str(value).split(","))
        except ValueError:
            sizes = ()
        if not sizes or min(sizes) < 1:
            self.fail(f"{value!r} is not a list of batch sizes such as 1,2,4,8.", param, ctx)
        return sizes


_EXAMPLES = """Record a PyTorch model so that analyze can use the recording in full.

\b
Examples:
  capture
  capture --precision fp32 --precision bf16 --batch-size 8 --out runs/
  capture --model resnet50 --precision fp16 --amp --channels-last
  capture --model my_models:build --device cpu --warmup 5 --timed-steps 20
  capture --train --loader 4 --precision bf16 --amp
  capture --batch-sweep 1,2,4,8,16,32,64 --precision fp16

Each precision goes into its own folder of OUT: trace.json.gz (one profiled
forward), run.json (latency without the profiler, warm-up, clocks, versions;
the trace holds the same) and, on CUDA, snapshot.pickle (memory). Then:
analyze runs/fp32/trace.json.gz

`capture run SCRIPT.py` records a script of your own: see capture run --help.

--model MODULE:FUNCTION calls your function; it returns a torch.nn.Module that
has an input_size such as (3, 224, 224), or a tuple (module, example_input).
The example is a tensor, a tuple (positional) or a dict (by name) of tensors,
the batch being the first dimension. A function with a batch_size parameter
is given --batch-size; the example of one without it is taken as it is.

Exit codes: 0 recorded, 2 not recorded (and why), 130 interrupted.
"""


@click.command(
    cls=_GroupedCommand,
    help=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 100},
)
@click.option("--model", default=DEFAULT_MODEL, metavar="NAME", help="A timm model, or MODULE:FUNCTION for your own.")
@click.option("--pretrained", is_flag=True, help="Trained weights (downloaded) instead of random ones.")
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    help=f"Samples per forward.  [default: {DEFAULT_BATCH_SIZE}, or what the model's own example holds]",
)
@click.option("--train", is_flag=True, help="Train: forward, loss, backward, AdamW, on synthetic data.")
@click.option(
    "--loader",
    type=click.IntRange(min=0),
    metavar="WORKERS",
    help="With --train: a DataLoader with so many workers instead of one batch that stays.",
)
@click.option("--seed", type=int, default=0, help="For random weights and input.")
@click.option(
    "--precision",
    "precisions",
    type=click.Choice(PRECISIONS),
    multiple=True,
    default=("fp32",),
    help="fp32 is IEEE everywhere; fp16 and bf16 cast the model. Repeat to compare.",
)
@click.option("--amp", is_flag=True, help="Reach fp16 or bf16 by autocast instead of by casting.")
@click.option("--channels-last", is_flag=True, help="Channels-last memory format; helps convolutions.")
@click.option("--compile", "compile_model", is_flag=True, help="Run the model through torch.compile.")
@click.option("--compile-mode", type=click.Choice(COMPILE_MODES), help="Mode of torch.compile; with --compile.")
@click.option("--cuda-graph", is_flag=True, help="Capture the forward once and replay it (CUDA).")
@click.option("--cudnn-benchmark", is_flag=True, help="Let cuDNN search its fastest convolutions (CUDA).")
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    help="Exactly N warm-up iterations.  [default: until two windows of 10 agree, at most 200 or 10 s]",
)
@click.option(
    "--timed-steps",
    "--iterations",
    cls=RenamedOption,
    type=click.IntRange(min=1),
    help="Forwards, or steps of training, timed without the profiler.  "
    f"[default: {DEFAULT_ITERATIONS['cuda']} on CUDA, {DEFAULT_ITERATIONS['cpu']} on the CPU]",
)
@click.option("--repeat", type=click.IntRange(min=1), default=1, help="Whole measurements; shows their spread.")
@click.option(
    "--batch-sweep",
    type=_BatchSizes(),
    help="Only latency and throughput for each of these batch sizes; no trace.",
)
@click.option(
    "--device",
    default="auto",
    metavar="DEVICE",
    help="cpu, cuda or cuda:N; auto takes CUDA where there is one.",
)
@click.option(
    "--traced-steps",
    "--steps",
    cls=RenamedOption,
    type=click.IntRange(min=1),
    default=1,
    help="Forwards, or steps of training, in the trace.",
)
@click.option(
    "--stacks", is_flag=True, help="Python stacks in the trace: about 1.7 µs of host time per op, twice the file."
)
@click.option("--no-shapes", is_flag=True, help="No operand shapes: saves about 0.6 µs of host time per op.")
@click.option(
    "--no-memory-events",
    is_flag=True,
    help="No allocations and frees: saves 0.1 to 0.4 µs of host time per op.",
)
@click.option(
    "--snapshot-steps",
    type=click.IntRange(min=0),
    help="Forwards, or steps of training, with the CUDA allocator's history, in a pass of their own.  "
    "[default: 1 on CUDA, but for --cuda-graph]",
)
@click.option("--snapshot-weights", is_flag=True, help="Begin that history before the model moves to the device.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    metavar="DIR",
    help="Folder for the recordings, one per precision.",
)
@click.option("--force", is_flag=True, help="Overwrite earlier recordings.")
@click.option("--debug", is_flag=True, help="Show a traceback with an internal error.")
@click.version_option(package_name="gpuledger", prog_name="capture")
def capture(out: Path, *, force: bool, debug: bool, **options: Any) -> None:
    """Record; the help text is above."""
    with explained(debug=debug), ending_promptly():
        _capture(out, force=force, options=options)


def _capture(out: Path, *, force: bool, options: dict[str, Any]) -> None:
    precisions = cast(tuple[Precision, ...], tuple(dict.fromkeys(options["precisions"])))
    check_amp(precisions, amp=options["amp"])
    loaded = _load()
    asked = options["device"]
    options["device_index"] = split_device(asked)[1]
    device = loaded.device.resolve_device_type(asked)
    if asked == "auto" and device == "cpu":
        click.echo("No CUDA device was found: recording on the CPU.", err=True)
    jobs = [(_settings(precision, device, options), out / precision) for precision in precisions]
    for settings, _ in jobs:  # all of them before the first begins, so that nothing fails after minutes
        loaded.run.open_bench(settings)
    for _, folder in jobs:
        loaded.output.check_target(folder, force=force)
    if options["loader"] is not None and not options["train"]:
        raise SettingsError("--loader feeds training.", "Add --train.")
    if options["train"]:
        _run_training(jobs, options, force=force)
    elif options["batch_sweep"]:
        _run_sweeps(loaded, jobs, options, force=force)
    else:
        _run_recordings(loaded, jobs, force=force)


def _run_recordings(loaded: _Loaded, jobs: list[tuple[Settings, Path]], *, force: bool) -> None:
    recordings = []
    for settings, folder in jobs:
        with loaded.progress.shown_progress(f"{settings.model} {settings.precision}") as tell:
            recordings.append(loaded.run.capture_run(settings, folder, force=force, tell=tell))
        click.echo(loaded.summary.describe(recordings[-1]) + "\n")
    if len(recordings) > 1:
        loaded.progress.print_table(loaded.summary.compare(recordings))


def _run_training(jobs: list[tuple[Settings, Path]], options: dict[str, Any], *, force: bool) -> None:
    if options["batch_sweep"]:
        raise SettingsError("--batch-sweep is for inference.", "Leave out --batch-sweep or --train.")
    from capture.training import check_training, train_run

    for settings, _ in jobs:
        check_training(settings)
    for settings, folder in jobs:
        train_run(settings, folder, workers=options["loader"], force=force)


def _run_sweeps(loaded: _Loaded, jobs: list[tuple[Settings, Path]], options: dict[str, Any], *, force: bool) -> None:
    if options["batch_size"] or options["snapshot_steps"] or options["snapshot_weights"] or options["stacks"]:
        raise SettingsError(
            "--batch-sweep makes no trace and no snapshot, and names the batch sizes itself.",
            "Leave out --batch-size, --stacks and --snapshot-steps.",
        )
    for settings, folder in jobs:
        with loaded.progress.shown_progress(f"{settings.model} {settings.precision}") as tell:
            sweep = loaded.sweep.run_sweep(settings, options["batch_sweep"], folder, force=force, tell=tell)
        table, saturation = loaded.summary.draw_sweep(sweep)
        click.echo(f"{settings.model}, {settings.precision} on {settings.device}")
        loaded.progress.print_table(table)
        click.echo(f"{saturation}\n{folder / 'sweep.json'}")


def _settings(precision: Precision, device: Any, options: dict[str, Any]) -> Settings:
    snapshot_steps = options["snapshot_steps"]
    if snapshot_steps is None:
        without_history = options["batch_sweep"] is not None or options["cuda_graph"]
        snapshot_steps = int(options["snapshot_weights"] or (device == "cuda" and not without_history))
    return Settings(
        model=options["model"],
        precision=precision,
        batch_size=options["batch_size"],
        device=device,
        device_index=options["device_index"],
        pretrained=options["pretrained"],
        amp=options["amp"],
        channels_last=options["channels_last"],
        compile=options["compile_model"],
        compile_mode=options["compile_mode"],
        cuda_graph=options["cuda_graph"],
        cudnn_benchmark=options["cudnn_benchmark"],
        repeat=options["repeat"],
        warmup=options["warmup"],
        iterations=options["timed_steps"],
        steps=options["traced_steps"],
        stacks=options["stacks"],
        shapes=not options["no_shapes"],
        memory_events=not options["no_memory_events"],
        snapshot_steps=snapshot_steps,
        snapshot_weights=options["snapshot_weights"],
        seed=options["seed"],
    )


def _load() -> _Loaded:
    # Late, so that --help is at hand at once and works without torch.
    with naming_missing_packages():
        from capture import device, output, progress, run, summary, sweep
    return _Loaded(device, output, run, sweep, summary, progress)
