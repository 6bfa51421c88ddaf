"""The model under measurement and its input, both still on the CPU in fp32."""

from __future__ import annotations

import difflib
import importlib
import inspect
import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import timm
import torch
from timm.data.config import resolve_model_data_config

from capture.errors import ModelError, SettingsError, first_line
from capture.settings import DEFAULT_BATCH_SIZE, Settings

_CLOSE_NAMES = 3
_CLOSENESS = 0.4
_SAME_BEGINNING = 3


@dataclass(frozen=True)
class LoadedModel:
    """A model and one batch of input.

    Attributes:
        module: On the CPU, in evaluation mode.
        args: Positional inputs.
        kwargs: Named inputs.
        batch_size: Samples per forward, read from the input itself.
        source: "timm" or "user".
    """

    module: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    batch_size: int
    source: str

    @property
    def input_shapes(self) -> list[list[int]]:
        """Shape of every tensor that goes in, in order."""
        return [list(tensor.shape) for tensor in flatten_tensors((self.args, self.kwargs))]

    @property
    def parameter_count(self) -> int:
        """Number of parameters."""
        return sum(parameter.numel() for parameter in self.module.parameters())


def load_model(settings: Settings) -> LoadedModel:
    """Build the model and its input from the seed.

    Raises:
        ModelError: Unknown name, no weights, or the user's own function does not give a model and an input.
        SettingsError: The batch size asked for is not the one that the user's function gives.
    """
    torch.manual_seed(settings.seed)
    module_name, colon, function_name = settings.model.partition(":")
    if colon:
        return _load_user_model(settings, module_name, function_name)
    return _load_timm_model(settings)


def flatten_tensors(value: object) -> list[torch.Tensor]:
    """Every tensor in nested tuples, lists and mappings, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        return [tensor for item in value.values() for tensor in flatten_tensors(item)]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in flatten_tensors(item)]
    return []


def map_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same nesting with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, Mapping):
        return {key: map_tensors(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(map_tensors(item, change) for item in value)
    return value


def all_finite(output: object) -> bool | None:
    """Whether every floating number in a model's output is finite; None where it holds none."""
    tensors = [tensor for tensor in flatten_tensors(output) if tensor.is_floating_point() and tensor.numel()]
    if not tensors:
        return None
    return all(math.isfinite(float(tensor.abs().max())) for tensor in tensors)


def _load_timm_model(settings: Settings) -> LoadedModel:
    if not timm.is_model(settings.model):
        close = _close_names(settings.model)
        meant = f"Did you mean {', '.join(close)}? " if close else ""
        raise ModelError(f"timm has no model named {settings.model!r}.", f"{meant}timm.list_models() lists them all.")
    module = _create_timm(settings).eval()
    resolve: Callable[..., Any] = resolve_model_data_config
    size = resolve(module)["input_size"]
    return _with_random_input(module, tuple(size), settings.batch_size or DEFAULT_BATCH_SIZE, "timm")


def _close_names(name: str) -> list[str]:
    known = timm.list_models()
    # timm's names are long: what someone mistypes is mostly their middle or their end.
    alike = [model for model in known if model[:_SAME_BEGINNING] == name[:_SAME_BEGINNING]]
    return difflib.get_close_matches(name, alike or known, n=_CLOSE_NAMES, cutoff=_CLOSENESS)


def _create_timm(settings: Settings) -> torch.nn.Module:
    try:
        module: torch.nn.Module = timm.create_model(settings.model, pretrained=settings.pretrained)
    except MemoryError:
        raise
    except Exception as error:
        if not settings.pretrained:
            raise ModelError(f"timm cannot build {settings.model}: {first_line(error)}") from error
        raise ModelError(
            f"The trained weights of {settings.model} cannot be had: {first_line(error)}",
            "Check the network, or leave out --pretrained: times do not depend on the weights.",
        ) from error
    return module


def _load_user_model(settings: Settings, module_name: str, function_name: str) -> LoadedModel:
    if settings.pretrained:
        raise SettingsError("--pretrained is for timm's models.", f"Load the weights inside {settings.model} instead.")
    function = _find_function(settings.model, module_name, function_name)
    takes_batch = "batch_size" in inspect.signature(function).parameters
    wanted = settings.batch_size or DEFAULT_BATCH_SIZE
    try:
        made = function(batch_size=wanted) if takes_batch else function()
    except Exception as error:
        raise ModelError(f"{settings.model} failed: {first_line(error)}", "Add --debug for its traceback.") from error
    return _check_user_model(settings, made)


def _find_function(model: str, module_name: str, function_name: str) -> Callable[..., Any]:
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())  # a console script, unlike python -m, does not look here
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except Exception as error:
        raise ModelError(
            f"--model {model}: {first_line(error)}",
            "Give module:function as python would import it from the current folder.",
        ) from error
    if not callable(function):
        raise ModelError(f"--model {model} is not a function.", "It must return a model, or (model, input).")
    return function  # type: ignore[no-any-return]


def _check_user_model(settings: Settings, made: object) -> LoadedModel:
    module, example = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(module, torch.nn.Module):
        raise ModelError(
            f"{settings.model} returned {type(module).__name__}, not a torch.nn.Module.",
            "Return the model, or a tuple (model, example_input).",
        )
    module = module.eval()
    if example is None:
        size = _configured_size(settings.model, module)
        return _with_random_input(module, size, settings.batch_size or DEFAULT_BATCH_SIZE, "user")
    args, kwargs = _as_call(example)
    batch_size = _real_batch_size(settings.model, args, kwargs)
    if settings.batch_size not in (None, batch_size):
        raise SettingsError(
            f"--batch-size {settings.batch_size}: {settings.model} gives an example of {batch_size} samples.",
            "Give its function a batch_size parameter, or leave out --batch-size.",
        )
    return LoadedModel(module, args, kwargs, batch_size, "user")


def _as_call(example: object) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    if isinstance(example, Mapping):
        return (), example
    if isinstance(example, list | tuple):
        return tuple(example), {}
    return (example,), {}


def _real_batch_size(model: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    tensors = flatten_tensors((args, kwargs))
    if not tensors or not tensors[0].dim():
        raise ModelError(
            f"The example input of {model} holds no batch.",
            "Return a tensor, a tuple or a dict of tensors whose first dimension is the batch.",
        )
    return int(tensors[0].shape[0])


def _configured_size(model: str, module: torch.nn.Module) -> tuple[int, ...]:
    for name in ("pretrained_cfg", "default_cfg"):
        config = getattr(module, name, None)
        if isinstance(config, Mapping) and config.get("input_size"):
            return tuple(config["input_size"])
    size = getattr(module, "input_size", None)
    if isinstance(size, list | tuple) and all(isinstance(length, int) for length in size):
        return tuple(size)
    raise ModelError(
        f"{model} gives a model without an input.",
        "Return (model, example_input), or give the model an input_size such as (3, 224, 224).",
    )


def _with_random_input(module: torch.nn.Module, size: tuple[int, ...], batch_size: int, source: str) -> LoadedModel:
    batch = torch.randn(batch_size, *size)
    return LoadedModel(module, (batch,), {}, int(batch.shape[0]), source)
