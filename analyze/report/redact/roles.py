"""Pseudonyms that decide as the names that they replace: figures read words in the names of ranges, modules and frames.

What a name decides is asked of the code that decides it. A pseudonym is a number, and where that is not enough one of
the words below beside it: no word of the name itself, unless it is one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

from msgspec import Struct

from analyze.findings.rules.device_copies import TRACED
from analyze.findings.rules.input_wait import OPTIMIZER_STEP
from analyze.kernels import deciding
from analyze.metrics.collectives import group_call
from analyze.metrics.first_use import COMPILING
from analyze.metrics.fusion import AUTOCAST, CASTING
from analyze.metrics.whatif.dispatch import REGION
from analyze.metrics.whatif.loading import FROM_WORKERS
from analyze.metrics.whatif.origins import EMPTIES, NUMBERED_REGION
from analyze.timeline.calls import STEP
from analyze.timeline.frames import LIBRARY
from analyze.timeline.host import DATA_LOADING

_READ = tuple(map(re.compile, (DATA_LOADING, COMPILING, FROM_WORKERS, REGION, LIBRARY.pattern)))
_BEGIN = (STEP, OPTIMIZER_STEP, TRACED)
_OF_OPS = frozenset((*CASTING, *AUTOCAST))
_LIBRARIES = ("nccl", "rccl", "xccl", "gloo", "ucc", "mpi", "c10d")
_COLLECTIVES = (
    "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "barrier", "send", "recv", "gather",
    "scatter", "reduce", "",
)  # fmt: skip

# Words for ranges: one or more for all that a range can decide. Those with `::` are read as names of kernels.
_RANGES = (
    "dataloader", "_MultiProcessingDataLoaderIter", "dynamo_timed", "CompiledFxGraph", STEP, OPTIMIZER_STEP, TRACED,
    "scaled_dot_product", "moe", "conv2d", "layer_norm", "softmax", "log_softmax", "dropout", "max_pool2d", "relu",
    "linear", "bmm", "l1_loss", "embedding", "topk", "sum", "copy", "add", "random", "nonzero", "dataloader copy",
    "a::gemm", "a::scudnn_relu", "a::flash_fwd", "cudnn::bn_fw_tr", "a::softmax_warp_forward", "a::act_and_mul",
    "a::add", "a::reduce_kernel", "a::gather_kernel", "a::transpose", "a::quantize", "a::topk_gating",
    "a::allreduce",
    "a::multi_tensor_adam", "a::radix_sort", "a::max_pool", "a::fused_dropout", "a::sampling", "<range>",
    *(f"{library}:{collective}" for library in _LIBRARIES for collective in _COLLECTIVES), *sorted(_OF_OPS),
)  # fmt: skip
_MODULES = (
    "Linear", "Embedding", "Attention", "MHA", "MoeBlock", "Moe", "LayerNorm", "ReLU", "RotaryEmbedding", "Rope",
    "Conv2d", "Softmax", "Dropout", "MaxPool2d", "Softplus", "L1Loss", "TopK", "Matmul", "Gather",
    "ScaledDotProduct", "FlashAttn", "AttentionNorm", "AttentionReLU", "AttentionRope", "AttentionLinear",
    "AttentionEmbedding", "AttentionDropout", "AttentionSoftmax", "Nccl", "OptimizerStep", "Dataloader",
)  # fmt: skip
_FRAMES = ("empty_cache", "_try_get_data")
_UNREAD = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")  # digits that leave the word beside them unchanged


def _of_range(name: str) -> tuple[object, ...]:
    region = NUMBERED_REGION.match(name)
    return (
        *deciding(name),
        *(pattern.search(name) is not None for pattern in _READ),
        *map(name.startswith, _BEGIN),
        name if name in _OF_OPS else "",
        group_call(name),
        region.groups() if region else (),
    )


def _of_module(name: str) -> tuple[object, ...]:
    return _of_range(f"nn.Module: {name}")


class Vocabulary(Struct, frozen=True, dict=True):
    """What names of one kind can decide, and the words that decide it too.

    Attributes:
        role: all that a name decides.
        words: the words, the first that fits is taken.
        forms: how a word and a number make a pseudonym, without a word first.
    """

    role: Callable[[str], tuple[object, ...]]
    words: tuple[str, ...]
    forms: tuple[str, ...]

    def decides_as(self, name: str, made: str) -> bool:
        """Whether one text can take the place of the other."""
        return name == made or self.role(name) == self.role(made)

    def pseudonym(self, name: str, number: int) -> str:
        """A text that decides what the name decides; without any word where no word fits."""
        role = self.role(name)
        word = self._words.get(role, "")
        for form in self.forms:
            made = _made(form, word, number)
            if self.role(made) == role:
                return made
        return _made(self.forms[0], "", number)

    @cached_property
    def _words(self) -> dict[tuple[object, ...], str]:
        """By what they decide, alone or beside a number."""
        found: dict[tuple[object, ...], str] = {}
        for form in self.forms:
            for word in ("", *self.words):
                found.setdefault(self.role(_made(form, word, 1)), word)
        return found


def _made(form: str, word: str, number: int) -> str:
    return form.format(word=word, number=number, unread=str(number).translate(_UNREAD))


RANGES = Vocabulary(_of_range, _RANGES, ("range-{number}", "{word} range-{number}", "range-{number} {word}",
                                         "{word} {unread}"))  # fmt: skip
MODULES = Vocabulary(_of_module, _MODULES, ("Module{number}", "Module{number}{word}", "{word}Module{number}",
                                            "{unread}{word}", "module-{number}"))  # fmt: skip


def of_frame(name: str) -> tuple[bool, ...]:
    """All that a Python frame decides."""
    return tuple(re.search(pattern, name) is not None for pattern in (LIBRARY, EMPTIES, FROM_WORKERS))


def frame(name: str, made: str) -> str:
    """What a frame was made into, changed where it would decide something else than the frame.

    Args:
        name: the frame.
        made: what it was made into.
    """
    role = of_frame(name)
    if of_frame(made) == role:
        return made
    before = made.rpartition(": ")[0]
    candidates = [f"{before}: {word}" if before else f"<{word}>" for word in _FRAMES]
    return next((text for text in (*candidates, f"<{made}>") if of_frame(text) == role), made)
