"""What `--redact` does with each kind of text: keeps it, gives it a pseudonym, or drops it. See docs/redaction.md."""

from __future__ import annotations

import builtins
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any

import orjson

from analyze.gpus import known_name
from analyze.metrics.whatif.origins import NUMBERED_REGION
from analyze.ranks.groups import dimension_of
from analyze.report.redact import roles
from analyze.report.redact.paths import base_name, cut_paths
from analyze.timeline.frames import LIBRARY

_FRAME = re.compile(r"(?P<path>.*)\((?P<line>\d{1,9})\): (?P<function>.*)", re.DOTALL)
_BUILT_IN = re.compile(
    r"<(?P<kind>built-in (?:method|function)|method|function) '?(?P<name>[A-Za-z_]\w*|)'?(?P<of>.*)>", re.DOTALL
)
_PLACES: tuple[object, ...] = (builtins, object, type, str, bytes, int, float, list, tuple, dict, set)
_BUILT_INS = frozenset(name for place in _PLACES for name in dir(place))  # names that Python itself has
_UNNAMED = ("<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>")
_MODULE = re.compile(r"nn\.Module: (?P<name>.*?)(?P<number>_\d{1,9})?", re.DOTALL)
_FUNCTION = re.compile(r"[A-Za-z_<][\w.<>]*")
_CODE_FILE = re.compile(r"[\w.-]+\.(?:py|pyc|pyx|pyi|ipynb|c|cc|cpp|cxx|cu|cuh|h|hh|hpp|so|rs|java|jl)", re.IGNORECASE)
_MADE_UP_FILE = re.compile(
    r"<(?:string|stdin|frozen (?P<module>\w+)(?:\.\w+)*|ipython-input-\d+|eval_with_key>?\.?\d*)>?"
)
_LIBRARY = re.compile(
    r"(?:^|[\\/])(?P<name>numpy|scipy|torch|functorch|torchgen|triton|einops|opt_einsum)(?P<end>[\\/])"
)
_PERSON = re.compile(r"(?<![\w.])([\w.+-]+)@([\w-]+(?:\.[\w-]+)*)")
_ADDRESS = re.compile(
    r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])"  # IPv4, MAC, IPv6
    r"|(?<![\w:-])(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}(?![\w:-])"
    r"|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){3,7}:?[0-9a-fA-F]{1,4}(?![\w:])"
)
_TORCH_FILE = re.compile(r"(?P<host>.+)_(?P<pid>\d+)\.\d{10,}(?P<rest>(?:\.pt)?\.trace\.json(?:\.(?:gz|zst|zip))?)")
_BETWEEN = r"[\[\](){},\s]"
_NUMBER = r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"
_NUMBERS = re.compile(rf"{_BETWEEN}*(?:{_NUMBER}(?:{_BETWEEN}+|\Z))*")
_VALUE = re.compile(rf"{_BETWEEN}*(?:(?:{_NUMBER}|True|False|None|-?inf|nan)(?:{_BETWEEN}+|\Z))*")
_VERSION = re.compile(r"\d{1,4}(?:\.\d{1,4}){1,2}")
_OPTIMIZERS = "Adadelta|Adafactor|Adagrad|Adam|AdamW|Adamax|ASGD|LBFGS|NAdam|RAdam|RMSprop|Rprop|SGD|SparseAdam|Muon"
_OWN_RANGE = re.compile(
    r"ProfilerStep#?\d*\*?|enumerate\(DataLoader\)#_(?:SingleProcess|MultiProcessing)DataLoaderIter\.__next__"
    rf"|Optimizer\.(?:step|zero_grad)#(?:{_OPTIMIZERS})\.(?:step|zero_grad)|DistributedDataParallel\.forward"
    r"|Torch-Compiled Region: \d+/\d+"
    r"|(?:nccl|gloo|mpi|ucc):(?:_|all|reduce|scatter|gather|to|broadcast|barrier|send|recv|base|oop|into|tensor|single"
    r"|coalesced|sparse)+(?: \d{1,9}(?:->|<-)\d{1,9})?"
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
        self._made: dict[tuple[str, str], str] = {}
        self._public: set[str] = set()

    def keep(self, names: Iterable[str]) -> None:
        """Names of ranges and frames that ops or API calls have too: they are shown anyway, and as one name."""
        self._public.update(names)

    def pseudonym(self, kind: str, text: str) -> str:
        """The same word for the same text; nothing for nothing."""
        if not text:
            return ""
        return self._numbered(kind, text, lambda number: f"{kind}-{number}")

    def _numbered(self, kind: str, text: str, made: Callable[[int], str]) -> str:
        """The same pseudonym for the same text, made of the next number of its kind."""
        known = self._given.get((kind, text))
        if known is None:
            self._counts[kind] += 1
            known = self._given[kind, text] = made(self._counts[kind])
        return known

    def _speaking(self, kind: str, name: str, words: roles.Vocabulary) -> str:
        """A pseudonym that decides as the name does, or the name where it is one of these words."""
        return name if name in words.words else self._numbered(kind, name, lambda n: words.pseudonym(name, n))

    def _is_free(self, kind: str, made: str, text: str) -> bool:
        """Whether nothing else was made into this: what are two names stay two."""
        return self._made.setdefault((kind, made), text) == text

    def given(self) -> Counter[str]:
        """How many different texts have a pseudonym, by its kind."""
        return +self._counts

    def process(self, text: str) -> str:
        """The name of a process group, or a process in a file's name."""
        return self.pseudonym("process", text)

    def group(self, text: str) -> str:
        """The name of a process group: a short number, as PyTorch gives, or a pseudonym."""
        return text if text.isdecimal() and len(text) <= _LONGEST_GROUP else self.pseudonym("group", text)

    def dimension(self, description: str | None) -> str | None:
        """Of a process group's description what its parallel dimension is read from, and nothing else."""
        dimension = dimension_of(description, None, None)
        if dimension == "world":
            return "default_pg"
        return dimension if dimension in ("tp", "pp", "dp", "ep", "cp") else None

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
        if name in self._public:
            return self.kept(name)
        if not self.names or _OWN_RANGE.fullmatch(name):
            kept = self.kept(name)
            if roles.RANGES.decides_as(name, kept) and self._is_free("range", kept, name):
                return kept
        region = NUMBERED_REGION.match(name)
        if region is not None:
            return self._numbered("range", name, f"range-{{}}: Torch-Compiled Region: {region[1]}/{region[2]}".format)
        return self._speaking("range", name, roles.RANGES)

    def frame(self, name: str) -> str:
        """A Python frame as profilers write it: file(line): function, a built-in, or a module."""
        if name in self._public:
            return self.kept(name)
        module = _MODULE.fullmatch(name)
        if module is not None:
            return f"nn.Module: {self.module(module['name'])}{module['number'] or ''}"
        built_in = _BUILT_IN.fullmatch(name)
        if built_in is not None:
            function = self._built_in(built_in["name"])
            of = f" of {self.pseudonym('object', built_in['of'])}" if built_in["of"] else ""
            return roles.frame(name, f"<{built_in['kind']} {function}{of}>")
        found = _FRAME.fullmatch(name)
        if found is None:
            return roles.frame(name, self.function(name))
        place = f"{self.code_file(found['path'])}({found['line']})"
        return roles.frame(name, f"{place}: {self.function(found['function'])}")

    def code_file(self, path: str) -> str:
        """The base name of a code file; behind the name of a library where figures depend on the library.

        Files of one name in several folders stay apart: all but the first get a number for their folder.
        """
        made_up = _MADE_UP_FILE.fullmatch(path)
        if path in ("", "??") or (made_up and (made_up["module"] or "os") in sys.stdlib_module_names):
            return path
        last = base_name(path)
        if not _CODE_FILE.fullmatch(last):
            return self.pseudonym("file", path)
        library, foreign = _LIBRARY.search(path), LIBRARY.search(path) is not None
        made = f"{library['name']}{library['end']}{last}" if library else last
        if LIBRARY.search(made) is None and foreign:
            made = f"lib/python3/{last}"
        if self._is_free("file", made, path):
            return made
        return f"{self.pseudonym('folder', path.removesuffix(last))}/{made}"

    def function(self, name: str) -> str:
        """A function of Python."""
        if name in ("", *_UNNAMED):
            return name
        return self.pseudonym("function", name) if self.names or not _FUNCTION.fullmatch(name) else name

    def _built_in(self, name: str) -> str:
        """A function of Python's own, or of a library that is no Python."""
        return self.pseudonym("function", name) if self.names and name not in _BUILT_INS else name

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
        if name and (self.names or not _FUNCTION.fullmatch(name)):
            return self._speaking("module", name, roles.MODULES)
        return name

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
        if max(map(text.count, ".:-")) > 2:
            text = _ADDRESS.sub(lambda m: self.pseudonym("host", m[0]), text)
        return text


_LONGEST_GROUP = 4  # digits
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
