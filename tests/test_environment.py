"""Two records are of one kind only if all that could move a time is equal."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from vitbench.measure import environment as module


def test_the_id_is_stable_and_follows_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vitbench").mkdir()
    (tmp_path / "vitbench" / "backend.py").write_text("one\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    first = module.environment("cpu")
    assert module.environment("cpu") == first
    (tmp_path / "vitbench" / "backend.py").write_text("two\n")
    assert module.environment("cpu")["id"] != first["id"]


def test_no_git_is_said_as_null(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOT", tmp_path)
    here = module.environment("cpu")
    assert here["commit"] is None and here["dirty"] is None


def test_the_number_of_threads_makes_another_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    first = module.environment("cpu")["id"]
    monkeypatch.setattr(module.torch, "get_num_threads", lambda: 1234)
    assert module.environment("cpu")["id"] != first


@pytest.mark.parametrize("name", ["ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "TIMM_FUSED_ATTN"])
def test_what_chooses_slower_kernels_makes_another_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = module.environment("cpu")["id"]
    monkeypatch.setenv(name, "0")
    assert module.environment("cpu")["id"] != first


def test_without_the_binding_to_nvml_the_driver_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(module.torch.cuda, "get_device_name", lambda: "a GPU")
    monkeypatch.setattr(module.torch.cuda, "get_device_properties", lambda: SimpleNamespace(uuid="1"))
    here = module.environment("cuda")
    assert here["device_name"] == "a GPU" and here["driver"] is None
