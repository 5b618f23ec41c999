"""`from comm_plans import …` gives the promised things, whatever was imported before, and costs nothing by itself."""

import subprocess
import sys

import pytest


def run(program: str) -> str:
    """What a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "first", ["pass", "import comm_plans.solve", "from comm_plans.solve import solve", "import comm_plans.cache"]
)
def test_solve_is_the_function(first):
    program = f"{first}\nfrom comm_plans import Plan, PlanCache, Topology, solve\nimport comm_plans\n"
    assert (
        run(program + "print(solve is comm_plans.solve, callable(solve), solve.__name__)").strip() == "True True solve"
    )


def test_importing_the_package_loads_nothing_heavy():
    heavy = "numpy", "numba", "scipy", "torch", "yaml", "ray", "mlflow", "hydra", "rich"
    loaded = run("import sys, comm_plans\nfrom comm_plans import Topology\nprint(*sys.modules)").split()
    assert not set(heavy) & set(loaded)


def test_unknown_names_are_refused():
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from comm_plans import nothing  # noqa: F401
