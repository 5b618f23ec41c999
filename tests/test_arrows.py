"""The arrows of the house: who may import whom."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("orchestrator", "trainers", "comm_plans")


def imported(path: Path) -> set[str]:
    """Every module that the file imports, at the top or inside a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            names |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def offenders(folder: str, forbidden: tuple[str, ...], allowed: tuple[str, ...] = ()) -> list[str]:
    """Files under `folder` that import a forbidden package, but for those under an allowed path."""
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place.startswith(allowed):
            continue
        found += [f"{place} imports {name}" for name in sorted(imported(path)) if name.split(".")[0] in forbidden]
    return found


@pytest.mark.parametrize(
    ("folder", "forbidden", "allowed"),
    [
        ("comm_plans", ("ray", "mlflow", "hydra", "omegaconf", "orchestrator", "trainers"), ()),
        ("comm_plans", ("torch",), ("comm_plans/runtime/",)),
        ("trainers", ("orchestrator", "ray", "mlflow", "hydra", "omegaconf"), ()),
        (
            "orchestrator",
            ("ray",),
            ("orchestrator/cluster/", "orchestrator/sweep", "orchestrator/recorders/ray_metrics"),
        ),
        ("orchestrator", ("mlflow",), ("orchestrator/recorders/mlflow",)),
        (
            "orchestrator",
            ("hydra", "omegaconf"),
            ("orchestrator/config.py", "orchestrator/cli.py", "orchestrator/composing.py"),
        ),
        ("orchestrator/learning_rate", ("torch", "ray", "mlflow", "hydra", "trainers", "comm_plans"), ()),
    ],
)
def test_imports_follow_the_arrows(folder: str, forbidden: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    assert offenders(folder, forbidden, allowed) == []


def test_recorders_never_see_each_other() -> None:
    places = sorted((ROOT / "orchestrator/recorders").glob("*.py"))
    recorders = {"journal", "mlflow", "ray_metrics", "terminal", "report"}
    for path in places:
        if path.name == "__init__.py":  # the one place that puts them together
            continue
        family = path.stem.split("_")[0]
        others = {f"orchestrator.recorders.{name}" for name in recorders - {family, path.stem}}
        assert not others & imported(path), path


def test_a_trainers_file_that_imports_the_orchestrator_would_be_found(tmp_path: Path) -> None:
    offender = tmp_path / "offender.py"
    offender.write_text("def late():\n    from orchestrator.config import Config\n")
    assert "orchestrator.config" in imported(offender)
