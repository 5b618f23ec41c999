"""`orchestrate --help` and a dry run answer at once: what takes seconds to import is not imported."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"torch", "ray", "mlflow", "skopt", "sklearn", "scipy", "numba", "matplotlib"}


@pytest.mark.parametrize("arguments", [["--help"], ["run", "dry_run=true"]])
def test_heavy_packages_stay_out(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from orchestrator.cli import main\n"
        f"sys.argv = ['orchestrate', *{arguments}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"print('loaded:', sorted({HEAVY} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.strip().endswith("loaded: []")
