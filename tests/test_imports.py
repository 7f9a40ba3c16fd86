"""Which part may import which: listing and counting on paper answer at once, and plug-ins never lean on one another."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "vitbench"
PLUGINS = [
    path
    for folder in ("backends", "operators", "layers", "counters", "metrics")
    for path in (PACKAGE / folder).glob("*.py")
]
FLOOR_0_AND_1 = (
    "shape", "case", "cost", "record", "sweep", "registry", "refusal", "operator", "parts", "windows", "work", "step",
    "regions", "devices", "gpu", "knowledge",
)  # fmt: skip
ON_PAPER = [*PACKAGE.glob("operators/*.py"), *(PACKAGE / f"{name}.py" for name in FLOOR_0_AND_1)]
HEAVY = ["torch", "numpy", "pandas", "scipy", "sympy", "matplotlib", "timm", "torchvision", "fvcore", "triton"]
LIGHT = {
    "the plain data": "import vitbench.case, vitbench.cost, vitbench.record, vitbench.shape, vitbench.sweep",
    "what is known of every card": """
from vitbench import gpu, regions, step
from vitbench.devices import cards
from vitbench.knowledge import known
assert all(known(name, family="vision_transformer").constants for name in cards())
""",
    "the contracts": "import vitbench.operator, vitbench.backend, vitbench.counter, vitbench.registry",
    "listing the operators": "from vitbench.operator import operators; assert len(list(operators)) >= 2",
    "listing the backends": "from vitbench.backend import backends; assert len(list(backends)) >= 6",
    "every cost on paper": """
from vitbench.operator import MODES, parse_operator
from vitbench.shape import Shape
for text in ("global", "window7-shift3"):
    for scope in parse_operator(text).scopes:
        assert all(parse_operator(text).cost(Shape(1, 14, 14, 768, 12), scope, mode).total_macs for mode in MODES)
""",
    "every case of every sweep": """
from vitbench.sweep import PROFILES, select
cases = [case for profile in PROFILES for device in ("cpu", "cuda") for case in select([], profile, device)]
assert cases and all(case.cost().total_macs and case.id for case in cases)
""",
}


@pytest.mark.parametrize("what", LIGHT)
def test_no_heavy_package_is_imported_for(what: str) -> None:
    code = f"{LIGHT[what]}\nimport sys\nprint(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def imported(path: Path) -> set[str]:
    """Every module that the file imports at any depth, names taken from a module included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found |= {node.module or "", *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def short(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", PLUGINS, ids=short)
def test_plug_ins_of_a_folder_never_import_one_another(path: Path) -> None:
    assert not {name for name in imported(path) if name.startswith(f"vitbench.{path.parent.name}.")}


@pytest.mark.parametrize("path", PLUGINS, ids=short)
def test_a_layer_knows_its_own_operator_and_no_other_plug_in_knows_any(path: Path) -> None:
    folders = ("backends", "operators", "layers", "counters", "metrics")
    others = {name for name in imported(path) for folder in folders if name.startswith(f"vitbench.{folder}")}
    own = {name for name in others if name.startswith(f"vitbench.operators.{path.stem}")}
    assert others - (own if path.parent.name == "layers" else set()) == set()


@pytest.mark.parametrize("path", ON_PAPER, ids=short)
def test_what_is_on_paper_names_torch_nowhere(path: Path) -> None:
    assert not {name for name in imported(path) if name.partition(".")[0] in ("torch", "pandas", "numpy")}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=short)
def test_the_machine_imports_neither_its_questions_nor_its_answers(path: Path) -> None:
    assert not {name for name in imported(path) if name.partition(".")[0] in ("analysis", "benchmarks", "tests")}
