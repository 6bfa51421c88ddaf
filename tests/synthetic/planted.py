"""Runs with a known cause of lost time, and the same runs repaired: what a finding should save.

Every figure is drawn at random from the ranges stated here, anew for each run, so that no rule can be tuned to a file.
`python -m tests.synthetic.planted` plants, analyses and prints what was found.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from analyze.report import build_report
from analyze.trace import Trace
from tests.synthetic import writer
from tests.synthetic.machine import Costs, Machine
from tests.synthetic.vit import FP16, FP32, TF32
from tests.synthetic.writer import PID, KinetoWriter

GPU, SMS, MEMORY = "NVIDIA A100-SXM4-80GB", 108, 80 * 2**30
STREAM, SIDE, COPIES, AUTOGRAD = writer.STREAM, 20, 24, writer.PID + 7
WAIT_NS = 1_300  # from the end of what a stream waits for to its next start
FULL = [432, 1, 1]  # blocks: four for each multiprocessor
TF32_OVER_FP32 = 156 / 19.5  # dense peaks of that GPU by its data sheet
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "TensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4> >(int)"
)
SOFTMAX = (
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>"
    "(float*, float const*, int, int, int, bool const*, int, bool)"
)
DROPOUT = (
    "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>"
    "(at::cuda::detail::TensorInfo<float const, unsigned int>)"
)
CAST = (
    "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::"
    "{lambda()#3}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >(int)"
)
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, float const*)"


def elementwise(functor: str) -> str:
    return (
        f"void at::native::vectorized_elementwise_kernel<4, at::native::{functor}<float>, std::array<char*, 3ul> >"
        f"(int, at::native::{functor}<float>, std::array<char*, 3ul>)"
    )


@dataclass
class Run:
    """One run: layers of products with a light kernel between them, fed by a host that is fast enough.

    Attributes:
        seed: of everything drawn; half of the runs use two host threads in turn, half have more than one stream.
        causes: what is planted.
    """

    seed: int
    causes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        r = random.Random(self.seed)
        self.steps, self.layers = r.randint(3, 5), r.randint(5, 9)
        self.kernel_ns = r.randint(40_000, 90_000)
        self.costs = Costs(
            launch_call=r.randint(3_000, 5_000),
            launch_latency=r.randint(5_500, 7_500),
            device_gap=r.randint(900, 1_500),
            sync_return=r.randint(5_000, 12_000),
            dispatch=r.randint(2_000, 4_000),
            python=r.randint(1_000, 3_000),
        )
        self.threads, self.side = r.random() < 0.5, r.random() < 0.5
        # By how much each cause costs; a planted one costs a good part of the step.
        step_ns = self.layers * 4 * self.kernel_ns
        self.amount = {
            "input-wait": r.uniform(1.3, 2.5) * step_ns,
            "python": r.uniform(1.3, 2.5) * step_ns,
            "pageable-copy": r.uniform(0.02, 0.05) * step_ns,
            "allocator-stall": r.uniform(1.4, 3.0) * step_ns / 3,
            "warm-up": r.uniform(2.0, 4.0) * step_ns,
            "exposed-communication": r.uniform(0.3, 1.0) * self.kernel_ns,
            "collective-wait": r.uniform(1.0, 2.5) * self.kernel_ns,
            "unfused-attention": r.uniform(0.6, 1.5) * self.kernel_ns,
            "fusible-chain": r.uniform(0.25, 0.5) * self.kernel_ns,
            "autocast-casts": r.uniform(0.2, 0.5) * self.kernel_ns,
            "training-mode": r.uniform(0.3, 0.8) * self.kernel_ns,
            "profiler-overhead": r.uniform(1.3, 2.5) * step_ns,
        }
        if self.has("launch-bound"):
            self.kernel_ns = r.randint(3_000, 12_000)
        self.host_ns = r.randint(15_000, 30_000)  # of dispatch per op where launching is the cause
        self.tiny_ns = r.randint(2_000, 4_000)

    def has(self, cause: str) -> bool:
        return cause in self.causes

    def about(self, ns: float, *where: object) -> int:
        """A length near `ns`: the same at the same place of the program, whatever is planted or repaired."""
        return max(int(ns * random.Random(f"{self.seed} {where}").uniform(0.95, 1.05)), 1)

    def simulate(self, repaired: str = "") -> Machine:
        """The run, with one cause repaired."""
        return _Program(self, repaired).run()


class UnevenMachine(Machine):
    """A machine whose small costs vary from time to time, also between a run and its repaired one."""

    def __init__(self, rows: KinetoWriter, costs: Costs, seed: object) -> None:
        super().__init__(rows, costs)
        self.random = random.Random(str(seed))

    def vary(self, ns: int) -> int:
        return int(ns * self.random.uniform(0.7, 1.4))


class _Program:
    def __init__(self, run: Run, repaired: str) -> None:
        self.plan, self.repaired = run, repaired
        self.wait_until = 0  # when what the kernels' stream waits for is done
        rows = KinetoWriter(GPU, SMS, MEMORY, {"made_by": "tests/synthetic/planted.py"})
        if run.has("precision-not-used"):
            rows.recorded = {"precision": "tf32", "amp": False, "model": "planted"}
        costs = run.costs
        if run.has("launch-bound"):
            fixed = repaired == "launch-bound"
            costs = Costs(
                0 if fixed else costs.launch_call,
                costs.launch_latency,
                costs.device_gap,
                costs.sync_return,
                0 if fixed else run.host_ns,
                0 if fixed else costs.python,
            )
        self.m = UnevenMachine(rows, costs, (run.seed, repaired))

    def broken(self, cause: str) -> bool:
        """Planted and not repaired."""
        return self.plan.has(cause) and self.repaired != cause

    def run(self) -> Machine:
        for number in range(self.plan.steps):
            with self.m.range(f"ProfilerStep#{number}"):
                self._step(number)
        self.m.spend(40_000)
        self.m.synchronize("cudaDeviceSynchronize")
        return self.m

    def _step(self, number: int) -> None:
        m, plan = self.m, self.plan
        if self.broken("input-wait"):
            with m.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
                m.spend(plan.about(plan.amount["input-wait"], number, "load"))
        if self.broken("python"):
            m.spend(plan.about(plan.amount["python"], number, "python"))
        if self.broken("profiler-overhead") and number:
            ns = plan.about(plan.amount["profiler-overhead"], number, "buffer")
            m.writer.overhead("Activity Buffer Request", m.now, ns)
            m.spend(ns)
        if plan.side:
            self._prefetch(number)
        for layer in range(plan.layers):
            if plan.threads and layer == plan.layers // 2:
                m.writer.tid = AUTOGRAD
            self._layer(number, layer)
        m.writer.tid = PID
        if plan.has("small-kernels"):
            for i in range(plan.layers * 40):
                self._op("aten::_fused_adam_", ADAM, plan.tiny_ns, (number, "adam", i))
        m.spend(m.costs.python)

    def _prefetch(self, step: int) -> None:
        """A copy beside the kernels, that nothing waits for."""
        with self.m.op("aten::copy_"):
            ns = self.plan.about(2.0 * self.plan.kernel_ns, step, "prefetch")
            name = "Memcpy HtoD (Pinned -> Device)"
            self.m.launch(name, ns, api="cudaMemcpyAsync", kind="memcpy", stream=COPIES, bytes=ns * 20)

    def _layer(self, step: int, layer: int) -> None:
        plan, where = self.plan, (step, layer)
        if plan.has("pageable-copy"):
            self._copy(where)
        if self.broken("allocator-stall") and layer < 3:
            with self.m.op("aten::empty"):
                self.m.call("cudaMalloc", plan.about(plan.amount["allocator-stall"], *where, "malloc"))
        self._product("aten::linear", "aten::addmm", where, "up")
        self._light(where)
        self._attention(where)
        self._product("aten::linear", "aten::addmm", where, "down")
        if self.broken("training-mode"):
            self._op("aten::native_dropout", DROPOUT, plan.amount["training-mode"], (*where, "dropout"))
        self._communicate(where)
        if plan.has("sync-stall"):  # repaired: the same copies, read after the loop
            with self.m.op("aten::item"), self.m.op("aten::_local_scalar_dense"):
                self.m.launch("Memcpy DtoH (Device -> Pinned)", 1_400, api="cudaMemcpyAsync", kind="memcpy", bytes=4)
                if self.broken("sync-stall"):
                    self.m.synchronize()
        if self.broken("iteration-sync"):
            self.m.synchronize("cudaDeviceSynchronize")
        self.m.spend(self.m.costs.python)

    def _product(self, outer: str, inner: str, where: tuple[object, ...], name: str) -> None:
        plan = self.plan
        slow = plan.has("fp32-gemm") or plan.has("precision-not-used")
        fixed = self.repaired in ("fp32-gemm", "precision-not-used")
        kernels = FP32 if slow and not fixed else TF32
        ns = plan.about(plan.kernel_ns, *where, name)
        if slow and not fixed:
            ns = int(ns * TF32_OVER_FP32)
        first = self.broken("warm-up") and where == (0, 1) and name == "up"
        call = plan.about(plan.amount["warm-up"], "first") if first else None
        if plan.has("autocast-casts"):
            with self.m.op(outer):
                if self.broken("autocast-casts"):
                    self._cast(where, name)
                with self.m.op(inner, dims=[[768], [512, 768], [768, 768]], types=["c10::Half"] * 3):
                    self._kernel(FP16.gemm, ns, call_ns=call)
            return
        with self.m.op(outer), self.m.op(inner, dims=[[768], [512, 768], [768, 768]], types=["float"] * 3):
            self._kernel(kernels.gemm, ns, call_ns=call)

    def _cast(self, where: tuple[object, ...], name: str) -> None:
        types = {"dims": [[768, 768], [768, 768]], "types": ["c10::Half", "float"]}
        with self.m.op("aten::to"), self.m.op("aten::_to_copy"), self.m.op("aten::copy_", **types):
            self.m.launch(
                CAST, grid=FULL, dur_ns=self.plan.about(self.plan.amount["autocast-casts"], *where, name, "cast")
            )

    def _light(self, where: tuple[object, ...]) -> None:
        """One light kernel, or a chain of them; repaired, the chain is as long as its longest kernel."""
        plan = self.plan
        if not plan.has("fusible-chain"):
            self._op("aten::gelu", elementwise("GeluCUDAKernelImpl"), 0.2 * plan.kernel_ns, (*where, "light"))
            return
        names = ("aten::mul", "aten::add", "aten::gelu", "aten::mul", "aten::layer_norm")
        lengths = [plan.about(plan.amount["fusible-chain"], *where, i) for i in range(len(names))]
        if self.repaired == "fusible-chain":
            names, lengths = ("aten::gelu",), [max(lengths)]
        for name, ns in zip(names, lengths, strict=True):
            kernel = NORM if name == "aten::layer_norm" else elementwise("CUDAFunctor_add")
            with self.m.op(name):
                self._kernel(kernel, ns)

    def _attention(self, where: tuple[object, ...]) -> None:
        plan, m = self.plan, self.m
        if not plan.has("unfused-attention"):
            self._op("aten::scaled_dot_product_attention", FP32.attention, plan.kernel_ns, (*where, "attention"))
            return
        with m.op("aten::scaled_dot_product_attention"), m.op("aten::_scaled_dot_product_attention_math"):
            self._op("aten::bmm", TF32.gemm, 0.5 * plan.kernel_ns, (*where, "scores"))
            if self.broken("unfused-attention"):
                self._op("aten::_softmax", SOFTMAX, plan.amount["unfused-attention"], (*where, "softmax"))
            self._op("aten::bmm", TF32.gemm, 0.5 * plan.kernel_ns, (*where, "values"))

    def _communicate(self, where: tuple[int, int]) -> None:
        plan = self.plan
        if plan.has("exposed-communication"):
            ns = plan.about(plan.amount["exposed-communication"], where[1], "reduce")
            self._collective(1 if self.repaired == "exposed-communication" else ns)
        if plan.has("collective-wait"):
            own = plan.about(0.05 * plan.kernel_ns, where[1], "reduce")
            late = (
                plan.about(plan.amount["collective-wait"], *where, "late") if where[0] != where[1] % plan.steps else 0
            )
            self._collective(own + (late if self.broken("collective-wait") else 0))

    def _collective(self, ns: int) -> None:
        """On the kernels' own stream, or on one of its own that waits for them and that they wait for."""
        with self.m.op("record_param_comms"):
            if not self.plan.side:
                self._kernel(NCCL, ns)
                return
            done = self.m.streams.get(STREAM, 0)
            self.wait_until = self.m.launch(NCCL, ns, grid=FULL, stream=SIDE, after=done + WAIT_NS) + WAIT_NS

    def _kernel(self, name: str, ns: int, call_ns: int | None = None) -> None:
        arrives = self.m.now + call_ns + WAIT_NS if call_ns else 0  # a module is loaded before its kernel is queued
        self.m.launch(name, ns, grid=FULL, call_ns=call_ns, after=max(self.wait_until, arrives))

    def _copy(self, where: tuple[object, ...]) -> None:
        m, ns = self.m, self.plan.about(self.plan.amount["pageable-copy"], *where, "copy")
        kind = "Pageable" if self.broken("pageable-copy") else "Pinned"
        end = max(m.now + m.costs.dispatch + m.costs.launch_latency, m.free + m.costs.device_gap) + ns
        call = end - m.now - m.costs.dispatch + 1_500 if self.broken("pageable-copy") else None
        with m.op("aten::copy_"):
            m.launch(
                f"Memcpy HtoD ({kind} -> Device)",
                ns,
                api="cudaMemcpyAsync",
                kind="memcpy",
                call_ns=call,
                bytes=ns * 12,
            )
            if self.broken("pageable-copy"):
                m.synchronize()

    def _op(self, op: str, kernel: str, ns: float, where: tuple[object, ...]) -> None:
        with self.m.op(op):
            self._kernel(kernel, self.plan.about(ns, *where))


NOTHING = 0.01  # of the window: what another cause hides
ONE = (
    "input-wait",
    "python",
    "sync-stall",
    "iteration-sync",
    "launch-bound",
    "pageable-copy",
    "allocator-stall",
    "warm-up",
    "fp32-gemm",
    "precision-not-used",
    "unfused-attention",
    "fusible-chain",
    "autocast-casts",
    "exposed-communication",
    "collective-wait",
    "training-mode",
    "profiler-overhead",
)
RULE_OF = {"python": "input-wait"}
TWO = (
    ("input-wait", "fp32-gemm"),
    ("sync-stall", "fusible-chain"),
    ("allocator-stall", "unfused-attention"),
    ("warm-up", "exposed-communication"),
    ("input-wait", "autocast-casts"),
    ("iteration-sync", "training-mode"),
)


@dataclass(frozen=True)
class Verdict:
    """What the program made of one planted run.

    Attributes:
        causes: what was planted.
        found: ids of its findings with their severities, in order.
        first: the planted cause that costs most is the first finding.
        errors: relative error of each planted cause's saving; None where it was not found or no saving was stated.
    """

    causes: tuple[str, ...]
    found: tuple[tuple[str, str], ...]
    first: bool
    truth: dict[str, float]
    errors: dict[str, float | None]


def judge(run: Run, folder: Path) -> Verdict:
    """Plant, analyse, and compare with the repaired runs."""
    machine = run.simulate()
    path = folder / "trace.json"
    machine.writer.write(path, (900_000, machine.now + 12_000))
    diagnosis = build_report(Trace.load(path)).diagnosis
    window = machine.truth.window_ns
    truth = {cause: window - run.simulate(cause).truth.window_ns for cause in run.causes}
    found = {finding.id: finding for finding in diagnosis.findings}
    errors: dict[str, float | None] = {}
    for cause, saved in truth.items():
        finding = found.get(RULE_OF.get(cause, cause))
        errors[cause] = None
        if finding is not None and finding.saving is not None:
            errors[cause] = (finding.saving.ns - saved) / max(saved, 1)
    worst = max(truth, key=lambda cause: truth[cause], default="")
    first = bool(diagnosis.findings) and diagnosis.findings[0].id == RULE_OF.get(worst, worst)
    order = tuple((finding.id, finding.severity) for finding in diagnosis.findings)
    return Verdict(run.causes, order, first, {c: ns / window for c, ns in truth.items()}, errors)


def draw(count: int, clean: int, seed: int) -> list[Run]:
    """So many runs with causes, all kinds in turn, and so many without."""
    r = random.Random(seed)
    kinds = [*((cause,) for cause in ONE), *TWO]
    planted = [Run(r.randrange(10**9), kinds[i % len(kinds)]) for i in range(count)]
    return [*planted, *(Run(r.randrange(10**9)) for _ in range(clean))]


@click.command()
@click.option("--count", default=46, show_default=True, help="Runs with causes.")
@click.option("--clean", default=10, show_default=True, help="Runs without.")
@click.option("--seed", type=int, help="Repeat these draws; anew by default.")
def main(count: int, clean: int, seed: int | None) -> None:
    """Plant causes, and print what was found and how well its saving was told."""
    seed = random.randrange(10**6) if seed is None else seed
    right = errors = told = 0
    alarms = 0
    with TemporaryDirectory() as folder:
        for run in draw(count, clean, seed):
            verdict = judge(run, Path(folder))
            right += verdict.first
            shown = []
            for cause, error in verdict.errors.items():
                if verdict.truth[cause] < NOTHING:
                    shown.append(f"{cause} costs nothing here")
                    continue
                told += 1
                errors += error is not None and abs(error) <= 0.10
                text = "not found" if error is None else f"saving off by {100 * error:+.1f}%"
                shown.append(f"{cause} {100 * verdict.truth[cause]:.1f}% of window, {text}")
            high = [name for name, severity in verdict.found if severity == "high"]
            alarms += bool(high) and not run.causes
            mark = " " if verdict.first or (not run.causes and not high) else "!"
            print(f"{mark} {'; '.join(shown) or 'clean':<75} found: {', '.join(n for n, _ in verdict.found) or 'none'}")
    print(
        f"seed {seed}: first finding right in {right} of {count}; saving within 10% in {errors} of {told}; "
        f"high findings on {alarms} of {clean} clean runs"
    )
    sys.exit(0 if right >= 0.95 * count and errors >= 0.95 * told and not alarms else 1)


if __name__ == "__main__":
    main()
