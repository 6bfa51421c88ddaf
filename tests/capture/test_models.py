from __future__ import annotations

import pytest
import torch

from capture.errors import ModelError, SettingsError
from capture.models import all_finite, flatten_tensors, load_model, map_tensors
from capture.settings import DEFAULT_BATCH_SIZE, Settings

EXAMPLES = "tests.capture.example_models"


def _user(function: str, batch_size: int | None = None, **options: bool) -> Settings:
    return Settings(model=f"{EXAMPLES}:{function}", batch_size=batch_size, **options)


def test_timm_model_takes_its_own_input_size() -> None:
    loaded = load_model(Settings(model="test_vit", batch_size=3))
    assert loaded.input_shapes == [[3, 3, 160, 160]]
    assert (loaded.batch_size, loaded.source) == (3, "timm")
    assert not loaded.module.training


def test_the_seed_gives_the_same_weights_and_input() -> None:
    one, other, third = (load_model(Settings(model=f"{EXAMPLES}:tiny", batch_size=2, seed=s)) for s in (1, 1, 2))
    assert torch.equal(one.args[0], other.args[0])
    assert torch.equal(one.module.head.weight, other.module.head.weight)  # type: ignore[union-attr,arg-type]
    assert not torch.equal(one.args[0], third.args[0])


def test_an_unknown_name_is_answered_with_names_that_exist() -> None:
    with pytest.raises(ModelError) as caught:
        load_model(Settings(model="vit_tny_patch16_224"))
    assert "vit_tiny_patch16_224" in caught.value.hint


def test_a_name_like_no_other_is_answered_without_a_guess() -> None:
    with pytest.raises(ModelError) as caught:
        load_model(Settings(model="@@@@@@@@@@"))
    assert "Did you mean" not in caught.value.hint


def test_pretrained_without_a_network_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import timm

    def fail(name: str, *, pretrained: bool) -> None:
        raise OSError("An error happened while trying to locate the file on the Hub\nmore lines")

    monkeypatch.setattr(timm, "create_model", fail)
    with pytest.raises(ModelError, match="cannot be had: An error happened") as caught:
        load_model(Settings(model="test_vit", pretrained=True))
    assert "\n" not in caught.value.message
    assert "--pretrained" in caught.value.hint


def test_the_default_batch() -> None:
    assert load_model(_user("tiny")).batch_size == DEFAULT_BATCH_SIZE


def test_a_model_with_an_input_size_gets_a_batch() -> None:
    assert load_model(_user("tiny", 7)).input_shapes == [[7, 3, 8, 8]]


def test_the_batch_of_an_example_is_the_real_one() -> None:
    assert load_model(_user("tiny_with_example")).batch_size == 5
    assert load_model(_user("tiny_with_example", 5)).batch_size == 5


def test_another_batch_than_the_examples_is_refused() -> None:
    with pytest.raises(SettingsError, match="--batch-size 8") as caught:
        load_model(_user("tiny_with_example", 8))
    assert "batch_size parameter" in caught.value.hint


def test_a_function_with_a_batch_size_is_given_it() -> None:
    assert load_model(_user("tiny_at_batch", 6)).batch_size == 6


@pytest.mark.parametrize("function", ["two_inputs", "two_inputs_in_order"])
def test_several_inputs_by_name_or_in_order(function: str) -> None:
    loaded = load_model(_user(function))
    assert loaded.batch_size == 3
    assert loaded.input_shapes == [[3, 6], [3, 6, 1]]
    assert loaded.module(*loaded.args, **loaded.kwargs).shape == (3, 6, 4)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("not_a_model", "returned int, not a torch.nn.Module"),
        ("no_input_size", "without an input"),
        ("scalar_example", "holds no batch"),
        ("failing", "failed: no such checkpoint"),
        ("A_NUMBER", "is not a function"),
        ("nothing_of_this_name", "nothing_of_this_name"),
    ],
)
def test_functions_that_give_no_model(function: str, words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        load_model(_user(function))
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_a_module_that_does_not_exist() -> None:
    with pytest.raises(ModelError, match="No module named 'no_such_module'"):
        load_model(Settings(model="no_such_module:build"))


def test_pretrained_is_not_for_ones_own_model() -> None:
    with pytest.raises(SettingsError, match="timm's models"):
        load_model(_user("tiny", pretrained=True))


def test_finite_outputs() -> None:
    good, bad = torch.ones(2), torch.tensor([1.0, float("nan")])
    assert all_finite({"a": good, "b": [good, (good,)]}) is True
    assert all_finite((good, bad)) is False
    assert all_finite(torch.tensor([float("inf")], dtype=torch.float16)) is False
    assert all_finite((torch.ones(2, dtype=torch.long), "text", torch.ones(0))) is None


def test_nested_tensors_are_found_and_changed_in_order() -> None:
    nested = ({"a": torch.ones(1)}, [torch.zeros(2), "text"])
    assert [tensor.numel() for tensor in flatten_tensors(nested)] == [1, 2]
    assert map_tensors(nested, lambda tensor: tensor.numel()) == ({"a": 1}, (2, "text"))
