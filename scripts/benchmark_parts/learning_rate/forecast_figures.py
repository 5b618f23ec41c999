"""How well losses are forecast and rates chosen on recorded curves: the `forecast_…` figures of the benchmark."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from scipy.stats import spearmanr

from orchestrator.learning_rate.arms import Arm
from orchestrator.learning_rate.calibration import prediction_interval
from orchestrator.learning_rate.decision import pick
from orchestrator.learning_rate.forecast import forecast
from orchestrator.learning_rate.rungs import AutoLRSOptions

CURVES = Path(__file__).parents[3] / "tests" / "data" / "autolrs.json"
SEEN = (40, 100)  # of 400 steps
BAND = AutoLRSOptions(base="SGD").usual_band()  # the curves are of optimizers that do not average

Case = dict[str, Any]


def forecast_figures(path: Path = CURVES) -> dict[str, float]:
    """Worst errors on known curves; regret, rank correlation and coverage of 90 % intervals on recorded trainings."""
    cases = json.loads(path.read_text())
    figures = _known(cases["synthetic"])
    groups: dict[tuple[str, int, int], list[Case]] = {}
    for case in cases["real"]:
        groups.setdefault((case["task"], case["seed"], case["state_step"]), []).append(case)
    for seen in SEEN:
        figures |= _recorded(list(groups.values()), seen)
    return figures


def _known(cases: Sequence[Case]) -> dict[str, float]:
    """`noisy`: as a share of the curve's amplitude, where it bends within what was seen and the noise is small."""
    exact, noisy = [], []
    for case in cases:
        error = abs(forecast(case["series"], case["tau"]).loss - case["true_loss_at_tau"])
        if case["noise_sigma"] == 0:
            exact.append(error)
        elif abs(case["b"]) * case["n"] >= 1 and case["noise_sigma"] <= 0.05:
            noisy.append(error / case["a"])
    return {"forecast_error_noise_free": max(exact), "forecast_error_noisy": max(noisy)}


def _recorded(groups: Sequence[Sequence[Case]], seen: int) -> dict[str, float]:
    hits = [hit for group in groups for hit in _hits(group, seen)]
    return {
        f"forecast_regret_{seen}": fmean(_regret(group, seen) for group in groups),
        f"forecast_spearman_{seen}": fmean(_correlation(group, seen) for group in groups),
        f"forecast_coverage_{seen}": fmean(hits),
    }


def _reached(case: Case, seen: int) -> float:
    return float(case["val_loss"][seen // case["val_every"] - 1])


def _regret(group: Sequence[Case], seen: int) -> float:
    """How much worse the rate that the probes' last validation picks ends than the best of the group."""
    arms = [Arm(case["id"], case["lr"], scores=[[seen, _reached(case, seen)]]) for case in group]
    winner = pick(arms, BAND, "smallest").name
    ends = {case["id"]: case["true_val_at_tau"] for case in group}
    return float(ends[winner] - min(ends.values()))


def _correlation(group: Sequence[Case], seen: int) -> float:
    reached = [_reached(case, seen) for case in group]
    return float(spearmanr(reached, [case["true_val_at_tau"] for case in group]).statistic)


def _hits(group: Sequence[Case], seen: int) -> list[bool]:
    """Whether the training loss ended within the interval that the beginnings of the group's own curves allow."""
    begun = [case["train_loss"][:seen] for case in group]
    hits = []
    for case, losses in zip(group, begun, strict=True):
        interval = prediction_interval(losses, case["tau"], begun)
        hits.append(interval is not None and interval[0] <= case["true_train_at_tau_mean20"] <= interval[1])
    return hits
