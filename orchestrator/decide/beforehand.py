"""What a launch would decide, in words, before anything is started."""

from orchestrator.config import Config
from orchestrator.decide.budget import LUCRATIVE, REINVESTED, SHARE
from orchestrator.decide.deciding import ORDER, too_short
from orchestrator.words import duration_text


def measured(config: Config) -> str:
    """A phrase for a dry run; empty where everything stays as given."""
    wanted = [what for what in ORDER if getattr(config.decide, what) == "measured"]
    if not wanted:
        return ""
    if too_short(config):
        return f"{', '.join(wanted)}: as given, for the run is over before measuring pays"
    share = f"{SHARE:.0%} of what its steps take, and {REINVESTED:.0%} of what was saved already"
    usual = f"{share}, or {LUCRATIVE:.0%} of what can be saved"
    limit = usual if config.decide.seconds is None else duration_text(config.decide.seconds)
    return f"{', '.join(wanted)}, by trial steps before the first one; at most {limit}"
