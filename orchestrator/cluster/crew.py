"""Workers that go from one training to the next: their processes have loaded all that takes long to load."""

from orchestrator.cluster.gang import Gang
from orchestrator.cluster.job_spec import JobSpec

_ANSWER_SECONDS = 10.0


class Crew:
    """Keeps the gang that the last training has left, for the next one that needs just such a gang."""

    def __init__(self) -> None:
        self._gang: Gang | None = None

    def taken(self, spec: JobSpec) -> Gang | None:
        """The gang, made ready for this job, if there is one that fits; whoever takes it leaves or ends it."""
        gang, self._gang = self._gang, None
        if gang is None or not (gang.fits(spec) and gang.answers(_ANSWER_SECONDS)):
            if gang is not None:
                gang.end()
            return None
        gang.renew(spec)
        return gang

    def prepare(self, spec: JobSpec) -> None:
        """Nothing is prepared beside a training: its workers are the next one's."""

    def left(self, gang: Gang) -> None:
        """A training needs it no longer."""
        self.end()
        self._gang = gang

    def end(self) -> None:
        """End the workers, if there are any."""
        if self._gang is not None:
            self._gang.end()
            self._gang = None
