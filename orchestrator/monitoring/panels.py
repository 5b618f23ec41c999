"""The one list of what monitoring shows: Ray's metrics, the Grafana dashboard and the watch page all follow it."""

from dataclasses import dataclass

PREFIX = "orchestrator_"  # of our metrics on Ray; Ray puts `ray_` before it


@dataclass(frozen=True)
class Metric:
    """A number that a run has at any time. `tags` are what tells its series apart, besides job and rank."""

    name: str
    title: str
    unit: str = ""  # as Grafana names it; "" is a plain number
    meaning: str = ""
    tags: tuple[str, ...] = ()
    logarithmic: bool = False
    scattered: bool = False  # its values do not follow from one another, so no line joins them


@dataclass(frozen=True)
class Panel:
    """One chart: metrics that are read together."""

    title: str
    metrics: tuple[Metric, ...]


LEARNING_RATE = Metric("learning_rate", "rate", meaning="learning rate of the last real step", logarithmic=True)
TRAIN_LOSS = Metric("train_loss", "training", meaning="mean training loss of the last steps, over ranks")
PROBE_LOSS = Metric(
    "probe_loss", "probe", meaning="mean training loss at the end of the last probe, over ranks", scattered=True
)
PROBE_RATE = Metric(
    "probe_rate", "probe", meaning="learning rate at the end of the last probe", logarithmic=True, scattered=True
)
VALIDATION_LOSS = Metric("validation_loss", "validation", meaning="loss on the validation split")
FORECAST_LOSS = Metric("forecast_loss", "forecast", meaning="loss that the last probe let expect", scattered=True)
STAGE = Metric("stage", "stage", meaning="stage of the learning-rate policy")
STEP = Metric("step", "steps taken", meaning="real optimizer steps so far")
STEPS_LEFT = Metric("steps_left", "steps left", meaning="real optimizer steps to come")
STEPS_A_SECOND = Metric("steps_per_second", "steps per second", meaning="of the last call of the workers")
SAMPLES_A_SECOND = Metric("samples_per_second", "samples per second", meaning="over all workers")
GOODPUT = Metric("goodput", "goodput", "percentunit", "share of the run's time spent in real steps that still count")
PROBE_SHARE = Metric("probe_share", "probes", "percentunit", "share of all steps taken that were probes")
COLLECTIVE_SECONDS = Metric("collective_seconds", "seconds", "s", "spent in collectives by plan", ("collective",))
COLLECTIVE_BYTES = Metric("collective_bytes", "bytes", "bytes", "moved by collectives", ("collective", "way"))
PLAN_RATIO = Metric(
    "plan_ratio", "of the optimum", "percentunit", "seconds the plan promised, as a share of those measured"
)
RECOVERIES = Metric("recoveries", "recoveries", meaning="how often the run was taken up again")
SNAPSHOT_SECONDS = Metric("snapshot_seconds", "snapshot", "s", "time of the last snapshot")

RANK_LOSS = Metric("rank_train_loss", "loss by rank", meaning="training loss of one rank's last step")
RANK_STEP_SECONDS = Metric("rank_step_seconds", "step by rank", "s", "seconds a step of one rank's last call")

PANELS = (
    Panel("Losses", (TRAIN_LOSS, VALIDATION_LOSS, FORECAST_LOSS, PROBE_LOSS)),
    Panel("Learning rate", (LEARNING_RATE, PROBE_RATE)),
    Panel("Steps", (STEP, STEPS_LEFT)),
    Panel("Stage", (STAGE,)),
    Panel("Steps per second", (STEPS_A_SECOND,)),
    Panel("Samples per second", (SAMPLES_A_SECOND,)),
    Panel("Shares", (GOODPUT, PROBE_SHARE)),
    Panel("Recoveries", (RECOVERIES,)),
    Panel("Snapshots", (SNAPSHOT_SECONDS,)),
    Panel("Collectives: seconds by plan", (COLLECTIVE_SECONDS,)),
    Panel("Collectives: bytes", (COLLECTIVE_BYTES,)),
    Panel("Plan: speed reached", (PLAN_RATIO,)),
)
OF_RANKS = (Panel("Loss by rank", (RANK_LOSS,)), Panel("Seconds a step by rank", (RANK_STEP_SECONDS,)))
"""Known to the workers alone, so on Ray's metrics and the Grafana dashboard only."""
