"""What deciding may cost: little where it gains nothing, more where it has gained already or can gain much."""

from dataclasses import dataclass
from time import monotonic

SHARE = 0.03  # of the run's steps, that deciding may take where it gains nothing
REINVESTED = 0.5  # of what decisions have saved, that further ones may take
WORTH = 0.5  # of what a decision may save at best, that it may cost: it mostly saves less
LUCRATIVE = 0.2  # of what it may save at best: costs so small are spent in any case


@dataclass
class Budget:
    """Seconds, since deciding `begun` by the monotonic clock.

    limit: as configured; None: SHARE of the `run`, which is what its steps take, REINVESTED of what has been `saved`,
    and whatever is LUCRATIVE.
    """

    begun: float
    run: float
    limit: float | None = None
    saved: float = 0.0

    @property
    def left(self) -> float:
        """What may still be spent."""
        usual = SHARE * self.run + REINVESTED * self.saved
        return (usual if self.limit is None else self.limit) - (monotonic() - self.begun)

    def allows(self, cost: float, saving: float) -> bool:
        """Whether something may be measured that takes `cost` and may save so much at best."""
        lucrative = self.limit is None and cost <= LUCRATIVE * saving
        return lucrative or cost <= min(self.left, WORTH * saving)
