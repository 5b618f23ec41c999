"""The arms of AutoLRS's search: rates that are tried from one state with the same batches, and how they compare."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from orchestrator.learning_rate.forecast import forecast, tail_mean
from orchestrator.learning_rate.gaussian_process import GaussianProcess
from orchestrator.learning_rate.policy import Series
from orchestrator.learning_rate.rungs import LEADERS
from orchestrator.learning_rate.search import RateSearch

LENGTH = 0.5  # decades: of the process's kernel
APART = 0.12  # decades between two rates
POINTS = 241
KAPPA = 1.0


@dataclass
class Arm:
    """One rate. `losses` are its training losses so far, all finite; `scores` are (steps, loss) where it was scored.

    `ended`: why it goes no further, "diverged", "fell behind" or "no better". `settings`: factors of what is set.
    `done`: steps taken, in batches of the size configured, as those of `scores` are.
    """

    name: str
    rate: float
    losses: list[float] = field(default_factory=list)
    scores: list[list[float]] = field(default_factory=list)
    ended: str | None = None
    settings: dict[str, float] = field(default_factory=dict)
    done: int = 0

    @property
    def score(self) -> float:
        """The last score; infinite without one."""
        return self.scores[-1][1] if self.scores else math.inf

    def take(self, series: Series, steps: int, until: int, scored: bool) -> None:
        """Note `steps` more steps, by which it has done `until`.

        A series that is shorter, not finite or far above its start has diverged.
        """
        self.done = until
        finite = [loss for loss in series.train if math.isfinite(loss)]
        self.losses += finite
        validation = [loss for _, loss in series.validation]
        if len(finite) < steps or max(finite) > runaway(self.losses[0]) or not all(map(math.isfinite, validation)):
            self.ended = "diverged"
        elif scored:
            self.scores.append([until, validation[-1] if validation else self.tail()])

    def score_at(self, steps: int) -> float:
        """The score after so many steps, or the last training losses of an arm that did not come so far."""
        return next((loss for scored, loss in self.scores if scored == steps), self.tail())

    def tail(self, until: int | None = None) -> float:
        """Mean of the last quarter of the training losses up to step `until`."""
        return tail_mean(self.losses[:until])

    def hope(self, at: int) -> float:
        """The training loss it may reach by step `at`: by forecast, but not above where it stands."""
        return min(forecast(self.losses, at).loss, self.tail())


def runaway(first: float) -> float:
    """The loss above which an arm that began at `first` has diverged."""
    return 4 * abs(first) + 4


def leading(arms: Iterable[Arm]) -> list[Arm]:
    """The arms that came furthest, best first."""
    scored = [arm for arm in arms if arm.scores]
    return sorted(scored, key=lambda arm: (-arm.done, arm.score, arm.rate))[:LEADERS]


def end_those_behind(arms: Sequence[Arm], best: Arm | None, check: int, at: int) -> None:
    """End the arms that do not hope to be, by step `at`, where the best one stood at step `check` already."""
    leading = best.tail(check) if best is not None else min((arm.tail() for arm in arms), default=math.inf)
    for arm in arms:
        if arm.hope(at) > leading:
            arm.ended = "fell behind"


def end_those_no_better(tried: Sequence[Arm], alive: Sequence[Arm], band: float) -> None:
    """End those just tried that are not better than all others by the share `band`: noise must not change settings."""
    best = min((arm.score for arm in alive if arm not in tried), default=math.inf)
    for arm in tried:
        if arm.ended is None and arm.score > best - band * abs(best):
            arm.ended = "no better"


@dataclass(frozen=True)
class Field:
    """The arms that were tried in an interval of rates, by their losses at the first rung, its `first` steps.

    Arms that ended before count with their last training losses; none counts as worse than where all began.
    """

    arms: Sequence[Arm]
    low: float
    high: float
    first: int

    def propose(self) -> float:
        """The rate to try next."""
        return self._search().ask()[0]

    def surrogate(self) -> tuple[tuple[float, float, float], ...]:
        """Rows of (rate, median, half of the one-sigma band) of the loss at the first rung."""
        rows = self._search().curve()
        if not self._positive:
            return rows
        return tuple((rate, math.exp(mean), math.exp(mean) * math.sinh(sd)) for rate, mean, sd in rows)

    @property
    def _losses(self) -> list[float]:
        return [min(arm.score_at(self.first), arm.losses[0]) for arm in self.arms if arm.losses]

    @property
    def _positive(self) -> bool:
        return min(self._losses, default=0.0) > 0

    def _search(self) -> RateSearch:
        decades = math.log10(self.high / self.low)
        process = GaussianProcess(LENGTH / decades, candidates=POINTS, apart=APART / decades)
        search = RateSearch(self.low, self.high, kappa=KAPPA, process=process)
        losses = [math.log(loss) for loss in self._losses] if self._positive else self._losses
        for arm, loss in zip((arm for arm in self.arms if arm.losses), losses, strict=True):
            search.tell(arm.rate, loss)
        return search
