"""A ViT-Tiny forward on the simulated machine, in three precisions, by the kernels that PyTorch launches for it."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path

from tests.synthetic.machine import Machine
from tests.synthetic.writer import KinetoWriter

DEPTH, TOKENS, WIDTH, HIDDEN, CLASSES = 12, 197, 192, 768, 1000
GPU, SMS, MEMORY_BYTES = "Synthetic GPU", 28, 12 * 2**30


@dataclass(frozen=True)
class Kernels:
    """Names of the kernels of one precision and how much faster than fp32 they run."""

    dtype: str
    gemm: str
    attention: str
    convolution: str
    element: str
    speed: float


FP32 = Kernels(
    "float",
    "ampere_sgemm_128x64_tn",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float, "
    "cutlass::arch::Sm80, true, 64, 64, 64, true, true>::Params)",
    "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, true, false, true>(int, int, int)",
    "float",
    1.0,
)
TF32 = Kernels(
    "float",
    "ampere_s1688gemm_fp32_128x64_sliced1x2_ldg8_f2f_tn".replace("_fp32", ""),
    FP32.attention,
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x64x32",
    "float",
    0.6,
)
FP16 = Kernels(
    "c10::Half",
    "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_tn",
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4>, false>"
    "(pytorch_flash::Flash_fwd_params)",
    "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x64x32",
    "c10::Half",
    0.35,
)
PRECISIONS = {"fp32": FP32, "tf32": TF32, "fp16": FP16}


@dataclass(frozen=True)
class Plan:
    """What to simulate.

    Attributes:
        precision: fp32, tf32 or fp16.
        batch: images per step.
        steps: profiler steps.
        loading_ns: time of the DataLoader per step.
        seed: of the small differences between equal kernels.
        item: read a result back after each step.
        gpu: name and multiprocessors of the device.
        asked: precision that `capture` would have stored; empty for a file that it did not make.
        amp: by autocast.
        gemm: precision of the GEMM kernels where it is another one: a switch that did nothing.
        convolution: the same for the convolution kernels.
    """

    precision: str = "fp32"
    batch: int = 64
    steps: int = 3
    loading_ns: int = 2_400_000
    seed: int = 20_260_101
    item: bool = True
    gpu: tuple[str, int] = (GPU, SMS)
    asked: str = ""
    amp: bool = False
    gemm: str = ""
    convolution: str = ""

    @property
    def kernels(self) -> Kernels:
        """The kernels of the precision, with the exceptions."""
        own = PRECISIONS[self.precision]
        gemm, convolution = (PRECISIONS[p or self.precision] for p in (self.gemm, self.convolution))
        return replace(own, gemm=gemm.gemm, convolution=convolution.convolution)


class ViT:
    """The model as a sequence of ops and launches."""

    def __init__(self, machine: Machine, plan: Plan) -> None:
        self.machine, self.plan = machine, plan
        self.kernels = plan.kernels
        self.random = random.Random(plan.seed)

    def step(self, number: int) -> None:
        """One profiled step: load, copy, forward, and the read-back."""
        m, p = self.machine, self.plan
        with m.range(f"ProfilerStep#{number}"):
            with m.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
                m.spend(self._about(p.loading_ns))
            self._copy_in()
            with m.range("model_inference"):
                self._forward()
            if p.item:
                with m.op("aten::item"), m.op("aten::_local_scalar_dense"):
                    m.launch("Memcpy DtoH (Device -> Pinned)", 1_500, api="cudaMemcpyAsync", kind="memcpy", bytes=4)
                    m.synchronize()
            m.spend(m.costs.python * 8)

    def _copy_in(self) -> None:
        m, size = self.machine, self.plan.batch * 3 * 224 * 224 * 4
        with m.op("aten::to", dims=[[self.plan.batch, 3, 224, 224]]), m.op("aten::copy_"):
            m.launch(
                "Memcpy HtoD (Pinned -> Device)", size * 10 // 120, api="cudaMemcpyAsync", kind="memcpy", bytes=size
            )

    def _forward(self) -> None:
        b = self.plan.batch
        self._kernel_op(
            "aten::conv2d",
            "aten::cudnn_convolution",
            self.kernels.convolution,
            2 * b * 196 * 768 * WIDTH,
            [[b, 3, 224, 224], [WIDTH, 3, 16, 16]],
        )
        self._elementwise(
            "aten::cat",
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::"
            "(anonymous namespace)::OpaqueType<4u>, unsigned int, 3, 64, 64>(unsigned int)",
        )
        self._elementwise("aten::add", self._functor("CUDAFunctor_add"))
        for _ in range(DEPTH):
            self._block()
        self._norm()
        self._linear(b, WIDTH, CLASSES)

    def _block(self) -> None:
        b, rows = self.plan.batch, self.plan.batch * TOKENS
        self._norm()
        self._linear(rows, WIDTH, 3 * WIDTH)
        with self.machine.op("aten::scaled_dot_product_attention", dims=[[b, 3, TOKENS, 64]] * 3):
            self._launch(self.kernels.attention, 4 * b * 3 * TOKENS * TOKENS * 64)
        self._linear(rows, WIDTH, WIDTH)
        self._elementwise("aten::add", self._functor("CUDAFunctor_add"))
        self._norm()
        self._linear(rows, WIDTH, HIDDEN)
        self._elementwise("aten::gelu", self._functor("GeluCUDAKernelImpl"), HIDDEN)
        self._linear(rows, HIDDEN, WIDTH)
        self._elementwise("aten::add", self._functor("CUDAFunctor_add"))

    def _linear(self, rows: int, inside: int, outside: int) -> None:
        dims = [[outside], [rows, inside], [inside, outside]]
        self._kernel_op("aten::linear", "aten::addmm", self.kernels.gemm, 2 * rows * inside * outside, dims)

    def _norm(self) -> None:
        name = (
            "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel"
            f"<{self.kernels.element}, float>(int, float, {self.kernels.element} const*)"
        )
        with self.machine.op("aten::layer_norm"), self.machine.op("aten::native_layer_norm"):
            self.machine.launch(name, self._about(self._bytes_ns(2 * WIDTH)))

    def _elementwise(self, op: str, kernel: str, width: int = WIDTH) -> None:
        with self.machine.op(op):
            self.machine.launch(kernel, self._about(self._bytes_ns(3 * width)))

    def _functor(self, name: str) -> str:
        t = self.kernels.element
        return (
            f"void at::native::vectorized_elementwise_kernel<4, at::native::{name}<{t}>, "
            f"std::array<char*, 3ul> >(int, at::native::{name}<{t}>, std::array<char*, 3ul>)"
        )

    def _kernel_op(self, outer: str, inner: str, kernel: str, flop: int, dims: list[list[int]]) -> None:
        types = [self.kernels.dtype] * len(dims)
        with self.machine.op(outer), self.machine.op(inner, dims=dims, types=types):
            self._launch(kernel, flop)

    def _launch(self, kernel: str, flop: int) -> None:
        ns = flop / 9e3 * self.kernels.speed  # 9 TFLOP/s in fp32
        self.machine.launch(kernel, self._about(int(ns) + 2_000))

    def _bytes_ns(self, width: int) -> int:
        element = 2 if self.kernels.element == "c10::Half" else 4
        return self.plan.batch * TOKENS * width * element * 10 // 3_000 + 1_500  # 300 GB/s

    def _about(self, ns: int) -> int:
        return max(ns + self.random.randint(-ns // 50, ns // 50), 1)


def simulate(plan: Plan) -> Machine:
    """Run a plan; the machine holds the rows and the truth."""
    notes = {"made_by": "tests/synthetic", "warning": "simulated; these times measure no hardware"}
    machine = Machine(KinetoWriter(*plan.gpu, MEMORY_BYTES, notes))
    if plan.asked:
        machine.writer.recorded = {"precision": plan.asked, "amp": plan.amp, "model": "vit_tiny"}
    vit = ViT(machine, plan)
    for number in range(2, 2 + plan.steps):
        vit.step(number)
    machine.spend(60_000)
    machine.synchronize("cudaDeviceSynchronize")  # the profiler's own
    return machine


def write(plan: Plan, path: Path) -> Machine:
    """Simulate a plan and write its trace."""
    machine = simulate(plan)
    machine.writer.write(path, (900_000, machine.now + 12_000))
    return machine
