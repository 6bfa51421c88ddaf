from __future__ import annotations

import pytest
import torch

from capture import environment
from capture.device import CpuDevice
from capture.environment import RECORDED_VARIABLES, judge_load, read_environment

SECRETS = {
    "HF_TOKEN": "hf_secret",
    "HF_HOME": "/home/someone",
    "HUGGING_FACE_HUB_TOKEN": "hf_secret",
    "CUDA_SECRET": "x",
    "TORCH_HOME": "/home/someone",
    "OMP_NUM_THREADS_PASSWORD": "x",
    "omp_num_threads": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "PATH": "/home/someone/bin",
}


def test_only_whole_names_of_the_list_are_recorded() -> None:
    assert read_environment({**SECRETS, "OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": "0"}) == {
        "OMP_NUM_THREADS": "2",
        "CUDA_VISIBLE_DEVICES": "0",
    }


def test_the_list_names_no_secret_and_no_path() -> None:
    for name in RECORDED_VARIABLES:
        words = set(name.split("_"))
        assert not words & {"TOKEN", "KEY", "SECRET", "PASSWORD", "HOME", "PATH", "DIR", "CACHE"}, name
    assert not set(RECORDED_VARIABLES) & set(SECRETS)


def test_the_process_environment_is_read_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMM_FUSED_ATTN", "0")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    recorded = read_environment()
    assert recorded["TIMM_FUSED_ATTN"] == "0"
    assert "hf_secret" not in recorded.values()


def test_versions_of_a_cpu_run() -> None:
    versions = environment.read_versions(CpuDevice(), None)
    assert versions.torch == torch.__version__
    assert (versions.cudnn, versions.driver) == (None, None)


def test_the_cpu_has_a_name_and_no_multiprocessors() -> None:
    info = environment.describe_device(CpuDevice())
    assert info.type == "cpu"
    assert info.name
    assert (info.sm_count, info.capability) == (None, None)


def test_threads() -> None:
    threads = environment.read_threads()
    assert threads.intra_op == 1
    assert threads.usable_cores >= 1


def test_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_usable_cores", lambda: 2)
    assert judge_load(0.5, 2.0).busy is False
    assert judge_load(0.5, 2.1).busy is True
    assert judge_load(3.0, None).busy is True
    assert judge_load(None, None).busy is None


def test_a_system_without_load_averages(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OSError

    monkeypatch.setattr(environment.os, "getloadavg", refuse)
    assert environment.read_load_average() is None
