"""Which values are tried next: the same for the same past, close to the best in the end, whatever losses are told."""

import math
from itertools import product

import pytest

from orchestrator.sweep.proposals import Tried, beginning, grid_size, pretended, proposal
from orchestrator.sweep.space import Dimension

RATE = Dimension("lr.rate", (), 1e-4, 1.0, logarithmic=True)
SIZE = Dimension("batch_size", (), 8, 64, whole=True)
POLICY = Dimension("lr", ("cosine", "constant"))


def bowl(values: dict[str, object]) -> float:
    """Lowest, 0, at a rate of 0.01 with cosine and 32 samples."""
    away = math.log10(float(values["lr.rate"])) + 2  # type: ignore[arg-type]
    return away**2 + abs(int(values["batch_size"]) - 32) / 32 + (values["lr"] != "cosine")  # type: ignore[call-overload]


def searched(search: str, seed: int, trials: int) -> list[Tried]:
    tried: list[Tried] = []
    for _ in range(trials):
        values = proposal(search, [RATE, SIZE, POLICY], seed, tried)
        tried.append(Tried(values, bowl(values)))
    return tried


def test_grid_tries_every_combination_once() -> None:
    space = [Dimension("a", (1, 2, 3)), Dimension("b", ("x", "y"))]
    found: list[Tried] = []
    for _ in range(grid_size(space)):
        found.append(Tried(proposal("grid", space, 0, found), None))
    assert [tuple(tried.values.values()) for tried in found] == list(product((1, 2, 3), ("x", "y")))


@pytest.mark.parametrize("search", ["random", "asha", pytest.param("bayes", marks=pytest.mark.slow)])
def test_equal_pasts_give_equal_futures_and_other_seeds_others(search: str) -> None:
    first, again, other = (searched(search, seed, 8) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len({str(tried.values) for tried in first}) == 8


@pytest.mark.slow
def test_a_bayesian_search_comes_closer_than_chance() -> None:
    found = min(tried.loss for tried in searched("bayes", 0, 20))
    chance = sorted(min(tried.loss for tried in searched("random", seed, 20)) for seed in range(9))
    assert found < 0.3
    assert found < chance[4]


@pytest.mark.slow
@pytest.mark.parametrize("losses", [[math.nan] * 9, [1.0] * 9, [1e300] * 9, [1.0, math.inf, math.nan, *[2.0] * 6]])
def test_no_losses_stop_a_search(losses: list[float]) -> None:
    space = [RATE, POLICY]
    tried: list[Tried] = []
    for loss in losses:
        tried.append(Tried(proposal("bayes", space, 0, tried), loss))
    assert len(tried) > beginning(space)


def test_trials_under_way_are_not_tried_twice() -> None:
    tried = searched("random", 0, 8)
    values = proposal("bayes", [RATE, SIZE, POLICY], 0, tried)
    assert proposal("bayes", [RATE, SIZE, POLICY], 0, [*tried, Tried(values, None)]) != values


def test_losses_that_are_none_lie_above_the_worst_and_unknown_ones_in_the_middle() -> None:
    assert pretended([1.0, math.inf, 3.0, None, math.nan]) == [1.0, 5.0, 3.0, 2.0, 5.0]
    assert pretended([None, math.inf]) == [0.0, 0.0]
