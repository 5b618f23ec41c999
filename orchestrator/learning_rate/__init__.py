"""Learning rates: decided by ask/tell policies that know nothing of clusters, and usable in any training loop."""

from orchestrator.learning_rate.autolrs import AutoLRS
from orchestrator.learning_rate.drive import History, drive
from orchestrator.learning_rate.factory import make_policy
from orchestrator.learning_rate.forecast import Extrapolation, forecast
from orchestrator.learning_rate.rungs import AutoLRSOptions

__all__ = ["AutoLRS", "AutoLRSOptions", "Extrapolation", "History", "drive", "forecast", "make_policy"]
