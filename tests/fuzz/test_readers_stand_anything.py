"""Inputs near valid ones for all that reads strangers' files: a value, or a refusal in one sentence, and soon."""

import random
from pathlib import Path

import pytest
from fuzz_parts.targets import TARGETS
from fuzz_parts.watching import defect

SLOW_TO_READ = {"configuration": 10}  # a composed configuration has hundreds of keys


def defects(name: str, inputs: int, folder: Path) -> list[str]:
    """What is wrong with how a target takes so many inputs."""
    target, rng = TARGETS[name], random.Random(f"tests {name}")
    found = []
    for _ in range(inputs):
        data = target.make(rng)
        found.append(defect(lambda data=data: target.read(data, folder), target.refusals, folder))
    return [fault for fault in found if fault]


@pytest.mark.parametrize("name", TARGETS)
def test_a_hundred_inputs(name: str, tmp_path: Path) -> None:
    assert defects(name, SLOW_TO_READ.get(name, 120), tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_thousands_of_inputs(name: str, tmp_path: Path) -> None:
    assert defects(name, 10 * SLOW_TO_READ.get(name, 300), tmp_path) == []


def test_what_is_forbidden_is_noticed(tmp_path: Path) -> None:
    """The watch itself: it would be of no use if it saw nothing."""
    import pickle

    escape = tmp_path.parent / f"{tmp_path.name}-escape"

    def recurse() -> None:
        recurse()

    def refuse() -> None:
        raise ValueError("moves \x1b[2J the cursor")

    def unpickle() -> None:
        pickle.loads(pickle.dumps(Path("x")))

    deeds = [recurse, refuse, unpickle, lambda: escape.write_text("x")]
    found = [defect(deed, (ValueError,), tmp_path) or "" for deed in deeds]
    escape.unlink()
    assert [fault.split()[0] for fault in found] == ["RecursionError", "a", "did", "did"]
    assert defect(lambda: (tmp_path / "here").write_text("x"), (), tmp_path) is None
