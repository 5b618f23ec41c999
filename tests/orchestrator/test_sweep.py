"""Ray Tune's searches over real trainings: every step counts, equal seeds give equal outcomes, the best comes back."""

import json
import math
import sys
from functools import partial
from pathlib import Path

import pytest
import ray.cloudpickle

from orchestrator.cluster.connection import Cluster
from orchestrator.errors import UserError
from orchestrator.sweep.populations import SEARCHES, Settings, Sweep, Swept, sweep

SPACE = {"rate": (1e-4, 10.0)}
STEPS = 64

ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Ray's workers cannot import a test


class Descent:
    """Down a parabola, best at a rate of 0.05. Each call is noted in a file, as the truth about what ran."""

    def __init__(self, notes: Path) -> None:
        self._notes, self._place, self._taken = notes, 3.0, 0

    def train(self, settings: Settings, steps: int) -> float:
        for _ in range(steps):
            noise = math.sin(7 * self._taken)
            self._place -= settings["rate"] * (2 * self._place + noise)
            self._taken += 1
        with self._notes.open("a") as lines:
            lines.write(json.dumps([settings["rate"], steps, self._taken]) + "\n")
        return self._place**2 if abs(self._place) < 1e3 else math.nan

    def state(self) -> bytes:
        return json.dumps([self._place, self._taken]).encode()

    def load_state(self, state: bytes) -> None:
        self._place, self._taken = json.loads(state)


def swept(search: str, notes: Path, seed: int = 0, trainings: int = 5) -> tuple[Swept, list[list[float]]]:
    found = sweep(partial(Descent, notes), Sweep(search, SPACE, trainings, STEPS, rounds=8, seed=seed))
    return found, [json.loads(line) for line in notes.read_text().splitlines()]


@pytest.mark.parametrize(
    "search", [pytest.param(each, marks=[pytest.mark.slow] * (each != "asha")) for each in SEARCHES]
)
def test_every_step_is_counted_and_the_best_comes_back(cluster: Cluster, tmp_path: Path, search: str) -> None:
    found, ran = swept(search, tmp_path / "first")
    assert found.steps == sum(steps for _, steps, _ in ran)
    assert json.loads(found.state)[1] == STEPS
    assert json.loads(found.state)[0] ** 2 == found.loss < 1
    assert (found.settings["rate"], STEPS // 8, STEPS) in [tuple(each) for each in ran]
    if search == "asha":
        assert STEPS < found.steps < 5 * STEPS
    else:
        assert found.steps == 5 * STEPS
        assert len({rate for rate, *_ in ran}) > 5  # some went on with other settings
    again, ran_again = swept(search, tmp_path / "second")
    assert (again, ran_again) == (found, ran)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"search": "grid"}, "search is grid: set it to asha, pbt, pb2"),
        ({"trainings": 1}, "trainings is 1"),
        ({"rounds": 7}, "steps is 64, not a multiple of rounds = 7"),
        ({"space": {"rate": (0.0, 1.0)}}, "space has rate from 0.0 to 1.0"),
    ],
)
def test_wrong_input_is_a_sentence(wrong: dict[str, object], sentence: str) -> None:
    right = {"search": "asha", "space": SPACE, "trainings": 5, "steps": STEPS, "rounds": 8}
    with pytest.raises(UserError, match=sentence):
        Sweep(**{**right, **wrong})  # type: ignore[arg-type]
