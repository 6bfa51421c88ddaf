"""Programs that run on the simulated GPU, with causes of lost time planted in them or repaired."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.synthetic import gpu_names as names
from tests.synthetic.gpu import AUTOGRAD, COMPUTE, COPIES, MAIN, NCCL, Key, Machine, Thread, Work
from tests.synthetic.gpu_plan import Plan
from tests.synthetic.gpu_rows import Rows

TF32_OVER_FP32 = 156 / 19.5  # dense peaks of an A100 by its data sheet
SMALL_GRID = (48, 1, 1)
BYTES_PER_NS = 20  # of copies
MADE_OF_GRAPHS = ("launch-bound", "small-kernels")


class Program:
    """One run of a plan."""

    def __init__(self, plan: Plan, repaired: frozenset[str] = frozenset()) -> None:
        self.plan, self.repaired, self.draw = plan, repaired, plan.draw
        self.machine = Machine(plan.draw, plan.host, Rows(stacks=plan.stacks))
        self.main = Thread(self.machine, MAIN, 800_000)
        self.engine = Thread(self.machine, AUTOGRAD, 0)
        self.at = self.main  # the thread that works
        self.numbers: dict[Key, int] = {}
        self.calls: list[tuple[Work, Key]] | None = None  # collected for a graph

    def has(self, cause: str) -> bool:
        return cause in self.plan.causes

    def broken(self, cause: str) -> bool:
        return self.has(cause) and cause not in self.repaired

    def run(self) -> Machine:
        with self.main.frame("train.py(112): <module>"), self.main.frame("train.py(61): main"):
            for step in range(self.plan.steps):
                with self.main.range(f"ProfilerStep#{step + 3}"):
                    self._step(step)
            if self.draw.unit("end") < 0.85:  # most programs end with a result
                self._read_back("logits", self.draw.between(8_000, 60_000, "logits"), "end")
        self.main.spend(self.draw.between(20_000, 60_000, "stop"))
        self.main.synchronize("stop", name="cudaDeviceSynchronize")
        self.main.spend(12_000)
        return self.machine

    # What a step does.

    def _step(self, step: int) -> None:
        plan, main = self.plan, self.main
        if self.broken("input-wait"):
            workers = self.draw.unit("workers") < 0.3
            kind = "_MultiProcessingDataLoaderIter" if workers else "_SingleProcessDataLoaderIter"
            ns = self._ns(plan.amount(1.2, 2.4, "input-wait") * plan.step_ns, step, "load")
            frame = main.frame("torch/utils/data/dataloader.py(733): __next__")
            with frame, main.range(f"enumerate(DataLoader)#{kind}.__next__"):
                main.spend(ns)
        main.python(step, "begin", times=4)
        self._copies_beside(step)
        if plan.family == "training":
            self._training(step)
        elif any(self.has(cause) for cause in MADE_OF_GRAPHS):
            self._maybe_graph(step)
        else:
            self._forward(step)
        if self.broken("sync-stall") and plan.draw.unit("where") < 0.3:
            self._read_back("loss", 1_400, step, "loss")
        if self.has("sync-stall") and plan.draw.unit("where") < 0.3:
            main.python(step, "log", times=plan.amount(10, 40, "sync-stall"))
        main.python(step, "end", times=3)

    def _forward(self, step: int) -> None:
        for layer in range(self.plan.layers):
            with self.at.frame(f"nn.Module: Block_{layer}"):
                self._layer((step, layer))

    def _layer(self, where: Key) -> None:
        self._before_layer(where)
        if self.plan.family == "convolutions":
            self._convolution((*where, "first"))
            self._light("aten::relu_", names.RELU, 0.15, (*where, "relu"))
            self._convolution((*where, "second"))
        else:
            self._light("aten::layer_norm", names.LAYER_NORM, 0.12, (*where, "ln1"))
            self._product(1.0, (*where, "qkv"))
            self._attention(where)
            self._product(0.5, (*where, "out"), splits=self.draw.unit("splits") < 0.4)
            self._collective(where)
            self._light("aten::layer_norm", names.LAYER_NORM, 0.12, (*where, "ln2"))
            self._product(1.2, (*where, "up"))
        self._chain(where)
        self._product(1.2, (*where, "down"))
        self._after_layer(where)

    def _training(self, step: int) -> None:
        main, engine = self.main, self.engine
        self._forward(step)
        with main.op("aten::cross_entropy_loss", step):
            self._op("aten::log_softmax", names.LOSS, 6_000, (step, "loss"))
        engine.take_over(main, step, "backward")
        self.at = engine
        self._op("LogSoftmaxBackward0", names.LOSS_BACKWARD, 6_000, (step, "loss backward"), backward=(step, "loss"))
        for layer in reversed(range(self.plan.layers)):
            self._backward((step, layer))
        main.take_over(engine, step, "optimizer")
        self.at = main
        if self.has("exposed-communication"):
            self.machine_order(NCCL, COMPUTE, step, "all reduced")
        with main.range("Optimizer.step#AdamW.step"), main.op("aten::_fused_adamw_", step, "adam"):
            for i in range(3):
                self._kernel(names.ADAM, 0.6 * self.plan.kernel_ns, (step, "adam", i))

    def _backward(self, where: Key) -> None:
        for name, size in (("down", 1.2), ("up", 1.2), ("out", 0.5), ("qkv", 1.0)):
            if name == "up":
                self._node("GeluBackward0", names.GELU_BACKWARD, 0.15, (*where, "act"))
            elif name == "qkv":
                self._node("ScaledDotProductFlashAttentionBackward0", names.FLASH_BACKWARD, 1.4, (*where, "attention"))
            self._node("AddmmBackward0", self._gemm(where), size, (*where, name), products=2)
        self._node("NativeLayerNormBackward0", names.LAYER_NORM_BACKWARD, 0.12, (*where, "ln1"))
        if self.has("exposed-communication") and int(str(where[1])) % 2 == 0:
            self._reduce((*where, "bucket"), waits=False)

    def _node(self, node: str, kernel: str, size: float, key: Key, products: int = 1) -> None:
        thread = self.at
        number = self._numbered(key, backward=True)
        around = thread.op(f"autograd::engine::evaluate_function: {node}", key, "b", **number)
        with around, thread.inner(node, key, "b", **number):
            for i in range(products):
                with thread.inner("aten::mm" if products > 1 else f"aten::{node.lower()[:-1]}", key, i):
                    ns = size * self.plan.kernel_ns * (self._slow() if products > 1 else 1)
                    self._kernel(kernel, ns, (*key, "backward", i))
        thread.spend(self.draw.near(1_500, 0.3, "queue", key))

    # Pieces of layers.

    def _slow(self) -> float:
        return TF32_OVER_FP32 if self.broken("fp32-gemm") else 1.0

    def _gemm(self, where: Key) -> str:
        if self.broken("fp32-gemm"):
            return names.GEMM_FP32[self.draw.between(-0.5, 2.49, "gemm", where[1:])]
        return names.GEMM_TF32 if self.has("fp32-gemm") or self.draw.unit("tf32") < 0.5 else names.GEMM_BF16

    def _product(self, size: float, key: Key, *, splits: bool = False) -> None:
        """A linear layer; where it splits K, its workspace is set to zero first and the parts are added up."""
        number = self._numbered(key)
        at = self.at
        with at.frame("nn.Module: Linear_0"), at.op("aten::linear", key), at.inner("aten::addmm", key, **number):
            if splits:
                self._launch(Work(names.MEMSET, 1_300, "memset", size_bytes=8_192), (*key, "zero"))
            self._kernel(self._gemm(key), size * self.plan.kernel_ns * self._slow(), key)
            if splits:
                self._kernel(names.SPLIT_K, 4_000, (*key, "sum"))
        self.at.python(key)

    def _convolution(self, key: Key) -> None:
        at, kernel = self.at, names.CONV_FP32 if self.broken("fp32-gemm") else names.CONV
        middle = at.inner("aten::convolution", key)
        with at.op("aten::conv2d", key), middle, at.inner("aten::cudnn_convolution", key):
            self._kernel(kernel, 1.2 * self.plan.kernel_ns * self._slow(), (*key, "conv"))
        self.at.python(key, "conv")

    def _light(self, op: str, kernel: str, size: float, key: Key) -> None:
        self._op(op, kernel, size * self.plan.kernel_ns, key)

    def _chain(self, where: Key) -> None:
        """The activation, or a chain of elementwise kernels; repaired, one pass as long as the longest of them."""
        key = (*where, "act")
        if not self.has("fusible-chain"):
            self._light("aten::gelu", names.GELU, 0.15, key)
            return
        kinds = [("aten::mul", names.MUL), ("aten::add", names.ADD), ("aten::sigmoid", names.SIGMOID)]
        count = self.draw.between(3, 7, "chain")
        ns = [self._ns(self.plan.amount(0.2, 0.5, "fusible-chain") * self.plan.kernel_ns, i) for i in range(count)]
        lengths = [self._ns(length, *key, i) for i, length in enumerate(ns)]
        for i, length in enumerate(lengths):
            if self.broken("fusible-chain") or i == lengths.index(max(lengths)):
                op, kernel = kinds[i % 3]
                self._op(op, kernel, length, (*key, i), exact=True)
            else:  # the op is gone, the Python around it is not
                self.at.python((*key, i))

    def _attention(self, where: Key) -> None:
        key = (*where, "attention")
        if not self.has("unfused-attention"):
            around = self.at.op("aten::scaled_dot_product_attention", key, **self._numbered(key))
            with around, self.at.inner("aten::_scaled_dot_product_flash_attention", key):
                self._kernel(names.FLASH, 0.8 * self.plan.kernel_ns, key)
            self.at.python(key)
            return
        style = ("math", "module", "by hand")[self.draw.between(-0.5, 2.49, "style")]
        if style == "math":
            around = self.at.op("aten::scaled_dot_product_attention", key)
            with around, self.at.inner("aten::_scaled_dot_product_attention_math", key):
                self._parts(key)
            return
        with self.at.frame("nn.Module: SelfAttention_0" if style == "module" else "model.py(87): attend"):
            self._parts(key)

    def _parts(self, key: Key) -> None:
        """Scores, scale, softmax and values; with the shapes that a reader needs where no module says what it is."""
        kernel_ns, size = self.plan.kernel_ns, self.plan.amount(0.5, 1.3, "unfused-attention")
        scores = {"Input Dims": [[96, 512, 64], [96, 64, 512]], "Input type": ["float", "float"]}
        with self.at.op("aten::matmul", key, 0), self.at.inner("aten::bmm", key, 0, **scores):
            self._kernel(names.GEMM_TF32, 0.4 * kernel_ns, (*key, 0))
        if not self.broken("unfused-attention"):
            self.at.python((*key, 1))
        else:
            square: dict[str, Any] = {"Input Dims": [[8, 12, 512, 512], []], "Input type": ["float", "Scalar"]}
            self._op("aten::div", names.DIV, 0.5 * size * kernel_ns, (*key, 1), **square)
            with self.at.op("aten::softmax", key, 2), self.at.inner("aten::_softmax", key, 2, **square):
                self._kernel(names.SOFTMAX, size * kernel_ns, (*key, 2))
        values = {"Input Dims": [[96, 512, 512], [96, 512, 64]], "Input type": ["float", "float"]}
        with self.at.op("aten::matmul", key, 3), self.at.inner("aten::bmm", key, 3, **values):
            self._kernel(names.GEMM_TF32, 0.4 * kernel_ns, (*key, 3))
        self.at.python(key, "values")

    # Communication.

    def _collective(self, where: Key) -> None:
        """The all-reduce of tensor parallelism, whose result is needed at once."""
        if self.has("exposed-communication") and self.plan.family == "transformer":
            self._reduce((*where, "reduce"), waits=True)

    def _reduce(self, key: Key, *, waits: bool) -> None:
        size = self.plan.amount(0.5, 1.5, "exposed-communication") * (1 if waits else 8)
        ns = self._ns(size * self.plan.kernel_ns, *key, "reduce")
        with self.at.op("c10d::allreduce_", key), self.at.inner("record_param_comms", key):
            self.machine_order(COMPUTE, NCCL, *key, "in")
            work = Work(names.ALL_REDUCE, ns if self.broken("exposed-communication") else 0, grid=(24, 1, 1))
            self.at.launch(work, *key, stream=NCCL)
            if waits:
                self.machine_order(NCCL, COMPUTE, *key, "out")

    def machine_order(self, before: int, after: int, *key: object) -> None:
        self.at.order(before, after, *key)

    # What goes wrong around layers.

    def _before_layer(self, where: Key) -> None:
        plan, at = self.plan, self.at
        step, layer = int(str(where[0])), int(str(where[1]))
        if self.has("pageable-copy"):
            self._copy_in(where)
        if self.broken("python") and layer == plan.layers // 2:
            with at.frame("train.py(88): log_statistics"):
                at.spend(self._ns(plan.amount(1.2, 2.4, "python") * plan.step_ns, step, "pause"))
        if self.broken("allocator-stall") and layer == 1:
            self._allocate(where)

    def _allocate(self, where: Key) -> None:
        """Blocks given back and taken anew, or only taken: many of them."""
        plan, at = self.plan, self.at
        count = self.draw.between(2, 5, "blocks")
        frees = self.draw.unit("frees") < 0.6
        each = plan.amount(*((0.1, 0.3) if frees else (0.5, 0.9)), "allocator-stall") * plan.step_ns
        with at.op("aten::empty", where):
            for i in range(count if frees else 0):
                at.free(*where, i, ns=self._ns(each, *where, "free", i))
            for i in range(count):
                at.call("cudaMalloc", self._ns(each, *where, "malloc", i))

    def _after_layer(self, where: Key) -> None:
        plan, at = self.plan, self.at
        if self.has("sync-stall") and plan.draw.unit("where") >= 0.3 and self._often(where):
            if self.broken("sync-stall"):
                self._read_back("check", 1_400, *where)
            else:  # the copy is made, and read when it has come
                with at.op("aten::copy_", where, "item"):
                    at.launch(Work(names.DTOH_PINNED, 1_400, "memcpy", size_bytes=4), *where, "check")
            at.python(where, "after item", times=plan.amount(3, 12, "sync-stall"))
        if self.has("iteration-sync") and self._often(where):
            if self.broken("iteration-sync"):
                at.synchronize(*where, "sync", name="cudaDeviceSynchronize")
            at.python(where, "after sync", times=plan.amount(3, 12, "iteration-sync"))

    def _often(self, where: Key) -> bool:
        return int(str(where[1])) % self.draw.between(1, 2, "every") == 0

    def _read_back(self, what: str, ns: int, *key: object) -> None:
        """`.item()` or `.cpu()`."""
        pinned, at = self.plan.pinned and what != "logits", self.at
        outer, middle = (
            ("aten::to", "aten::_to_copy") if what == "logits" else ("aten::item", "aten::_local_scalar_dense")
        )
        name = names.DTOH_PINNED if pinned else names.DTOH_PAGEABLE
        with at.op(outer, key, what), at.inner(middle, key, what):
            work = Work(name, ns, "memcpy", size_bytes=4 if what != "logits" else ns * BYTES_PER_NS)
            at.copy_out(work, key, what, pinned=pinned)

    def _copy_in(self, where: Key) -> None:
        size = self.plan.amount(0.15, 0.5, "pageable-copy")
        ns = self._ns(size * self.plan.kernel_ns, *where, "copy in")
        work = Work(names.HTOD_PAGEABLE, ns, "memcpy", size_bytes=ns * BYTES_PER_NS)
        at, key = self.at, (*where, "copy in")
        with at.op("aten::to", key), at.inner("aten::_to_copy", key), at.inner("aten::copy_", key):
            if self.broken("pageable-copy"):
                at.copy_in(work, *key, waits=self.draw.unit("waits") < 0.5)
            else:
                at.launch(replace(work, name=names.HTOD_PINNED), *key)
        at.python(where, "after copy", times=self.plan.amount(3, 12, "pageable-copy"))

    def _copies_beside(self, step: int) -> None:
        """The next batch, copied on a stream of its own: nothing waits for it."""
        if self.draw.unit("prefetch") < 0.3:
            ns = self._ns(1.5 * self.plan.kernel_ns, step, "prefetch")
            with self.at.op("aten::copy_", step, "prefetch"):
                work = Work(names.HTOD_PINNED, ns, "memcpy", size_bytes=ns * BYTES_PER_NS)
                self.at.launch(work, step, "prefetch", stream=COPIES)

    # Graphs of small kernels.

    def _maybe_graph(self, step: int) -> None:
        if self.has("launch-bound") and self.broken("launch-bound"):
            self._forward(step)
            return
        self.calls = []
        now, self.at = self.at.now, Thread(Machine(self.draw, self.plan.host, Rows()), 1, 0)
        self._forward(step)  # what is captured takes no time
        self.at, calls, self.calls = self.main, self.calls, None
        assert self.at.now == now, "time passed while a graph was captured"
        works = [work for work, _ in calls]
        gaps = [self.draw.between(900, 1_200, "node gap", key) for _, key in calls]
        if self.has("small-kernels"):
            works, gaps = self._small(step)
        self.main.graph(works, step, gaps=gaps)
        self.main.python(step, "replayed", times=6)

    def _small(self, step: int) -> tuple[list[Work], list[int]]:
        """Many short products and a long one now and then; repaired, short ones follow each other without a gap."""
        works, gaps = [], []
        for i in range(self.plan.layers * 30):
            long = i % 30 == 0
            ns = self._ns(self.plan.kernel_ns if long else 1_500 + 3_500 * self.draw.unit("short", i), step, i)
            free = not long and i % 30 != 1 and not self.broken("small-kernels")
            works.append(Work(names.GEMM_BF16 if long else names.SHORT[i % 2], ns))
            gaps.append(0 if free else self.draw.between(900, 1_200, "node gap", step, i))
        return works, gaps

    # Kernels.

    def _numbered(self, key: Key, *, backward: bool = False) -> dict[str, int]:
        """Autograd's number of an op and of its node, where there is a graph."""
        if self.plan.family != "training":
            return {}
        number = {"Sequence number": self.numbers.setdefault(key, len(self.numbers) + 100)}
        return number | ({"Fwd thread id": 1} if backward else {})

    def _ns(self, ns: float, *key: object) -> int:
        """About so long: 5 % jitter from step to step."""
        return max(self.draw.near(ns, 0.05 / 1.6, "jitter", key), 1)

    def _op(
        self,
        op: str,
        kernel: str,
        ns: float,
        key: Key,
        *,
        exact: bool = False,
        backward: Key | None = None,
        **args: Any,
    ) -> None:
        args |= self._numbered(key) if backward is None else self._numbered(backward, backward=True)
        with self.at.op(op, key, **args):
            self._kernel(kernel, ns, key, exact=exact)
        self.at.python(key)

    def _kernel(self, name: str, ns: float, key: Key, *, exact: bool = False) -> None:
        grid = SMALL_GRID if self.has("small-batch") else (864, 1, 1)
        self._launch(Work(name, int(ns) if exact else self._ns(ns, *key), grid=grid), key)

    def _launch(self, work: Work, key: Key) -> None:
        if self.calls is not None:
            self.calls.append((work, key))
        else:
            self.at.launch(work, *key)
