"""How AutoLRS spends a step budget on its search: which arms go how far, in rungs that double.

Five rates for T/40 steps, the best two of them on to T/20, where the winner just goes on; to T/10 where no average
shows early what a rate is worth. Arms that are behind halfway through the first rung end there. Only the losers' steps
are lost: 0.125 T at most, or 0.175 T. In a decade and a half, as around a rate that did well before, three rates are
enough: 0.075 T, or 0.125 T.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.learning_rate.checks import require, require_budget, require_positive
from orchestrator.learning_rate.dimensions import FACTORS, check_dimensions, least_steps

LEAST_RUNG = 20  # steps; less says nothing about a rate
GRID = (2, 1, 3, 0)  # the order in which the middles of four equal parts of the interval are tried
NARROW_GRID = (1, 0, 2)  # the same of three, in a narrow interval
LEADERS = 2
WHOLE_SEARCH = 600  # steps from which on the full search is worth its cost; below, one rung with fewer arms
SEARCH_SHARE = 0.2  # of the budget, at most, in runs shorter than that
LEAST_ARMS = 3

USUAL_INTERVALS = {  # by the optimizer's class; where a rate acts on normalised gradients, its scale hardly varies
    "AdamWScheduleFree": (1e-4, 1e-1),
    "RAdamScheduleFree": (1e-4, 1e-1),
    "Adam": (1e-4, 1e-1),
    "AdamW": (1e-4, 1e-1),
    "NAdam": (1e-4, 1e-1),
    "RAdam": (1e-4, 1e-1),
    "SGD": (1e-3, 1.0),
    "SGDScheduleFree": (1e-2, 10.0),
    "ScheduleFreeMuon": (1e-3, 3e-2),
}
ANY_OPTIMIZER = (1e-4, 1.0)
AROUND = 10**0.75  # how far from a rate that did well before the next is searched
NARROW = 1.001 * AROUND**2  # an interval's upper end over its lower, at most


@dataclass(frozen=True, kw_only=True)
class AutoLRSOptions:
    """Parameters of AutoLRS.

    min_lr, max_lr: the interval searched; unless given, a decade and a half around `near`, a rate that did well before,
    or what is usual for `base`, the optimizer's class.
    known_lr: train at this level without a search. budget: "soft" takes all steps and searches on top (at most 0.125 of
    them from 800 steps on), "hard" takes the search out of them. finish: let the level "ease" off slowly, for
    optimizers that average, or "decay" linearly to 0, after a search of at most 0.175 of the steps. band: share by
    which an arm may be worse than the best and still be as good, 0.02 for optimizers that average and 0.03 for others
    unless given; prefer: the "smallest" or the "largest" rate of those. strict: refuse budgets too small for a search,
    instead of training at a usual level. validate_every: steps between validations, about twenty a run unless given.
    also: what is searched besides the rate, by names of `dimensions`, each for at most 0.05 of the steps on top.
    """

    min_lr: float | None = None
    max_lr: float | None = None
    base: str = "AdamWScheduleFree"
    near: float | None = None
    known_lr: float | None = None
    budget: str = "soft"
    finish: str = "ease"
    band: float | None = None
    prefer: str = "smallest"
    strict: bool = True
    validate_every: int | None = None
    also: tuple[str, ...] = ()

    def check(self, steps: int) -> None:
        """UserError where a parameter makes no sense."""
        require_budget(steps, None)
        require_positive(min_lr=self.min_lr, max_lr=self.max_lr, near=self.near, known_lr=self.known_lr)
        require_positive(validate_every=self.validate_every)
        low, high = self.interval()
        require(low < high, f"lr.min_lr is {low}, not below lr.max_lr = {high}: lower lr.min_lr or raise lr.max_lr.")
        require(0 <= self.usual_band() < 1, f"lr.band is {self.band}: set it from 0 to below 1.")
        for name, words in (("budget", "soft hard"), ("finish", "ease decay"), ("prefer", "smallest largest")):
            value = getattr(self, name)
            require(value in words.split(), f"lr.{name} is {value}: set it to {words.replace(' ', ' or ')}.")
        searches = self.known_lr is not None or not self.strict or steps >= smallest_budget()
        require(
            searches,
            f"steps is {steps}, too few to search a rate: set steps to {smallest_budget()} or more, lr.known_lr to a "
            "rate, or lr.strict=false to train at a usual one.",
        )
        self._check_also(steps)

    def interval(self) -> tuple[float, float]:
        """Lowest and highest rate of the search."""
        low, high = USUAL_INTERVALS.get(self.base.rsplit(".", 1)[-1], ANY_OPTIMIZER)
        if self.near is not None:
            low, high = self.near / AROUND, self.near * AROUND
        return self.min_lr or low, self.max_lr or high

    @property
    def order(self) -> tuple[int, ...]:
        """In which the middles of equal parts of the interval are tried."""
        return NARROW_GRID if self.narrow else GRID

    @property
    def narrow(self) -> bool:
        """Whether fewer rates than usual are enough."""
        low, high = self.interval()
        return high <= NARROW * low

    def searched_also(self, steps: int) -> tuple[str, ...]:
        """What is searched besides the rate, as far as the steps suffice."""
        return tuple(name for name in self.also if steps >= least_steps(name, LEAST_RUNG))

    @property
    def doublings(self) -> int:
        """Rungs after the first: without an average, short trials say less."""
        return 2 if self.finish == "decay" else 1

    def usual_band(self) -> float:
        """The band that is given, or else the usual one: without an average a loss after few steps is noisier."""
        if self.band is not None:
            return self.band
        return 0.02 if "ScheduleFree" in self.base else 0.03

    def known_level(self, steps: int) -> float | None:
        """The level that needs no search: the known one, or a usual one where the steps are too few for any."""
        if self.known_lr is None and steps < smallest_budget():
            return mid_points(*self.interval(), self.order)[0]
        return self.known_lr

    def _check_also(self, steps: int) -> None:
        check_dimensions(self.also)
        for name in self.also:
            known = f"lr.also has {name}, but with lr.known_lr nothing is searched: set one of the two to null."
            require(self.known_lr is None, known)
            least = least_steps(name, LEAST_RUNG)
            few = f"steps is {steps}, too few to search {name}: set steps to {least} or more, or drop it from lr.also."
            require(not self.strict or steps >= least, few)


@dataclass(frozen=True)
class Rung:
    """`arms` ("grid", "proposal", one of `FACTORS`, "leaders") go on until `until` steps from the start.

    There they may be scored.
    """

    arms: str
    until: int
    scored: bool


@dataclass(frozen=True)
class SearchPlan:
    """`grid` rates of the first rung, all rungs in order, and the steps that are thrown away, at most.

    `also_steps`: those of them that go to other settings than the rate.
    """

    grid: int
    rungs: tuple[Rung, ...]
    lost_steps: int
    also_steps: int = 0

    @property
    def first(self) -> int:
        """Steps of the first rung."""
        return next(rung.until for rung in self.rungs if rung.scored)


def mid_points(low: float, high: float, order: Sequence[int] = GRID) -> list[float]:
    """The rates of the first rung, in the order in which they are tried."""
    return [low * (high / low) ** ((part + 0.5) / len(order)) for part in order]


def smallest_budget() -> int:
    """Steps from which on three rates can be tried within the search's share."""
    return round((LEAST_ARMS - 1) * LEAST_RUNG / SEARCH_SHARE)


def plan_search(steps: int, also: Sequence[str] = (), doublings: int = 1, narrow: bool = False) -> SearchPlan | None:
    """The search of a run of `steps`, for the rate and what else is named; None where they are too few for any.

    doublings: rungs after the first, each twice as long as the one before. narrow: whether fewer rates are enough.
    """
    if steps < smallest_budget():
        return None
    first = max(LEAST_RUNG, steps // 40)
    affordable = 1 + int(SEARCH_SHARE * steps) // LEAST_RUNG
    most = len(NARROW_GRID) if narrow else len(GRID) + 1  # the last one is proposed
    arms = min(affordable, most)
    grid = min(arms, len(NARROW_GRID if narrow else GRID))
    begin = [*_first_rung("grid", first), *(_first_rung("proposal", first) if arms > grid else ())]
    if steps < WHOLE_SEARCH:
        return SearchPlan(grid, tuple(begin), (arms - 1) * first)
    others = [Rung(name, first, scored=True) for name in also]
    also_steps = sum(len(FACTORS[name]) for name in also) * first
    leaders = [Rung("leaders", first * 2**doubling, scored=True) for doubling in range(1, doublings + 1)]
    lost = (arms - LEADERS) * first + (LEADERS - 1) * leaders[-1].until + also_steps
    return SearchPlan(grid, (*begin, *others, *leaders), lost, also_steps)


def warmup_steps(steps: int) -> int:
    """Steps in which the rate rises linearly, in probes as in the run."""
    return min(max(8, steps // 80), steps)


def _first_rung(arms: str, until: int) -> Iterator[Rung]:
    """Arms are compared halfway, though never before 20 steps."""
    check = max(LEAST_RUNG, until // 2)
    if check < until:
        yield Rung(arms, check, scored=False)
    yield Rung(arms, until, scored=True)
