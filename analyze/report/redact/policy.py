"""What `--redact` does with each kind of text: keeps it, gives it a pseudonym, or drops it. See docs/redaction.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import orjson

from analyze.gpus import known_name
from analyze.report.redact.paths import base_name, cut_paths

_FRAME = re.compile(r"(?P<path>.*)\((?P<line>\d{1,9})\): (?P<function>.*)", re.DOTALL)
_BUILT_IN = re.compile(r"<(built-in (?:method|function)|method|function) '?([A-Za-z_]\w*)'?.*>", re.DOTALL)
_MODULE = re.compile(r"nn\.Module: (?P<name>.*?)(?P<number>_\d{1,9})?", re.DOTALL)
_FUNCTION = re.compile(r"[A-Za-z_<][\w.<>]*")
_CODE_FILE = re.compile(r"[\w.-]+\.(?:py|pyc|pyx|pyi|ipynb|c|cc|cpp|cxx|cu|cuh|h|hh|hpp|so|rs|java|jl)", re.IGNORECASE)
_MADE_UP_FILE = re.compile(r"<(?:string|stdin|frozen [\w.]+|ipython-input-\d+|eval_with_key>?\.?\d*)>?")
_LIBRARY = re.compile(r"(?:^|[\\/])(?P<name>numpy|scipy|torch|functorch|torchgen|triton|einops|opt_einsum)[\\/]")
_STANDARD = re.compile(r"(?:^|[\\/])(?:lib[\\/])?python3?\.?\d*[^\\/]*[\\/](?!(?:site|dist)-packages[\\/])")
_PERSON = re.compile(r"(?<![\w.])([\w.+-]+)@([\w-]+(?:\.[\w-]+)*)")
_ADDRESS = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")
_TORCH_FILE = re.compile(r"(?P<host>.+)_(?P<pid>\d+)\.\d{10,}(?P<rest>(?:\.pt)?\.trace\.json(?:\.(?:gz|zst|zip))?)")
_NUMBERS = re.compile(r"[\[\](){}\s\d.,eE+-]*")
_VALUE = re.compile(r"True|False|None|-?inf|nan|[\[\](),\s\d.eE+-]*")
_VERSION = re.compile(r"\d{1,4}(?:\.\d{1,4}){1,3}")
_ROLE = re.compile(
    r"dataloader|dynamo_timed|compile_fx|compile_inner|call_user_compiler|CachingAutotuner\.benchmark"
    r"|async_compile\.wait",
    re.IGNORECASE,
)  # what makes a range one of data loading or of compilation; figures depend on it
_OPTIMIZERS = "Adadelta|Adafactor|Adagrad|Adam|AdamW|Adamax|ASGD|LBFGS|NAdam|RAdam|RMSprop|Rprop|SGD|SparseAdam|Muon"
_OWN_RANGE = re.compile(
    r"ProfilerStep#?\d*\*?|enumerate\(DataLoader\)#_(?:SingleProcess|MultiProcessing)DataLoaderIter\.__next__"
    rf"|Optimizer\.(?:step|zero_grad)#(?:{_OPTIMIZERS})\.(?:step|zero_grad)|DistributedDataParallel\.forward"
    r"|Torch-Compiled Region: \d+/\d+|(?:nccl|gloo|mpi|ucc):\w+"
)
_TYPES = frozenset(
    (
        "", "float", "double", "int", "long", "long int", "long long", "short", "short int", "char", "signed char",
        "unsigned char", "bool", "Scalar", "ScalarList", "TensorList", "GenericList", "Device", "Generator", "None",
    )
)  # fmt: skip
_TORCH_TYPE = re.compile(
    r"(?:c10::)?(?:complex<(?:float|double|c10::Half)>|Half|BFloat16|Float8_e\dm\d\w{0,5}|q?u?int\d{1,2})"
)


class Redaction:
    """The texts of one command, redacted: what gets a pseudonym gets the same one in all its inputs.

    Pseudonyms count in order of first appearance, so they say nothing about what they replace.
    """

    def __init__(self, *, names: bool = False) -> None:
        """Begin.

        Args:
            names: give pseudonyms to user ranges, modules and functions too.
        """
        self.names = names
        self._given: dict[tuple[str, str], str] = {}
        self._counts: Counter[str] = Counter()

    def pseudonym(self, kind: str, text: str) -> str:
        """The same word for the same text; nothing for nothing."""
        if not text:
            return ""
        known = self._given.get((kind, text))
        if known is None:
            self._counts[kind] += 1
            known = self._given[kind, text] = f"{kind}-{self._counts[kind]}"
        return known

    def given(self) -> Counter[str]:
        """How many different texts have a pseudonym, by its kind."""
        return +self._counts

    def process(self, text: str) -> str:
        """The name of a process group, or a process in a file's name."""
        return self.pseudonym("process", text)

    def number(self, kind: str, text: str) -> str:
        """A process id or a thread id, as a number by order."""
        return self.pseudonym(kind, text).removeprefix(f"{kind}-")

    def file(self, name: str) -> str:
        """The base name of an input; torch's own naming holds a host and a process."""
        name = base_name(name)
        found = _TORCH_FILE.fullmatch(name)
        if found is not None:
            return f"{self.pseudonym('host', found['host'])}_{self.process(found['pid'])}{found['rest']}"
        return self._people(name)

    def kept(self, name: str) -> str:
        """The name of an op, a kernel or an API call: kept, but for folders, persons and addresses."""
        return self._people(cut_paths(name))

    def range(self, name: str) -> str:
        """A user range, also as an option names it."""
        if not self.names or _OWN_RANGE.fullmatch(name):
            return self.kept(name)
        role = _ROLE.search(name)
        return f"{role[0]} {self.pseudonym('range', name)}" if role else self.pseudonym("range", name)

    def frame(self, name: str) -> str:
        """A Python frame as profilers write it: file(line): function, a built-in, or a module."""
        module = _MODULE.fullmatch(name)
        if module is not None:
            return f"nn.Module: {self.module(module['name'])}{module['number'] or ''}"
        built_in = _BUILT_IN.fullmatch(name)
        if built_in is not None:
            return f"<{built_in[1]} {built_in[2]}>"
        found = _FRAME.fullmatch(name)
        if found is not None:
            return f"{self.code_file(found['path'])}({found['line']}): {self.function(found['function'])}"
        return self.function(name)

    def code_file(self, path: str) -> str:
        """The base name of a code file; behind the name of a library where figures depend on the library."""
        last = base_name(path)
        if _MADE_UP_FILE.fullmatch(path):
            return path
        if not _CODE_FILE.fullmatch(last):
            return "file" if path not in ("", "??") else path
        library = _LIBRARY.search(path)
        if library is not None:
            return f"{library['name']}/{last}"
        return f"lib/python3/{last}" if _STANDARD.search(path) else last

    def function(self, name: str) -> str:
        """A function of Python."""
        if not _FUNCTION.fullmatch(name):
            return "function" if name else ""
        return self.pseudonym("function", name) if self.names and not name.startswith("<") else name

    def native(self, name: str) -> str:
        """A function of C++, or of Python, in a stack."""
        if name.startswith("nn.Module: "):
            return self.frame(name)
        if _FUNCTION.fullmatch(name):
            return name if name in _CALLS else self.function(name)
        public = re.match(r"(?:[\w ]+ )?(?:at|torch|c10|caffe2)::", name)
        return self.kept(name) if public or not self.names else self.pseudonym("function", name)

    def module(self, name: str) -> str:
        """The class of an nn.Module."""
        if not _FUNCTION.fullmatch(name):
            return self.pseudonym("module", name)
        return self.pseudonym("module", name) if self.names else name

    def shape(self, text: str) -> str:
        """Sizes, as JSON: numbers and lists of them."""
        return _as_json(text, lambda word: word if _NUMBERS.fullmatch(word) else "")

    def types(self, text: str) -> str:
        """Types of an op's inputs, as JSON: those of torch."""
        return _as_json(text, lambda word: word if word in _TYPES or _TORCH_TYPE.fullmatch(word) else "")

    def values(self, text: str) -> str:
        """Inputs of an op that are no tensors, as JSON: numbers, truth values and lists of them."""
        return _as_json(text, lambda word: word if _VALUE.fullmatch(word) else "")

    def device(self, name: str) -> str:
        """A device's marketing name, where it is one."""
        if not name or known_name(name):
            return name
        vendor = re.match(r"NVIDIA|AMD|Intel", name)
        return f"{vendor[0]} GPU" if vendor else "GPU"

    def version(self, text: str) -> str:
        """The numbers of a version."""
        found = _VERSION.match(text)
        return found[0] if found else ""

    def word(self, text: str, known: Collection[str], other: str = "") -> str:
        """One of some words of this program; any other text is dropped."""
        return text if text in known else other

    def _people(self, text: str) -> str:
        """Addresses and persons in a name that is kept."""
        if "@" in text:
            text = _PERSON.sub(lambda m: f"{self.pseudonym('user', m[1])}@{self.pseudonym('host', m[2])}", text)
        return _ADDRESS.sub(lambda m: self.pseudonym("host", m[0]), text) if text.count(".") > 2 else text


_CALLS = ("_call_impl", "_slow_forward")  # how torch calls a module: what is called by them is one


def _as_json(text: str, how: Callable[[str], str]) -> str:
    if not text:
        return text
    try:
        return orjson.dumps(_cleaned(orjson.loads(text), how)).decode()
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        return ""


def _cleaned(value: Any, how: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return how(value)
    if isinstance(value, list):
        return [_cleaned(item, how) for item in value]
    return None if isinstance(value, dict) else value
