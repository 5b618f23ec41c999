"""What a run's communication came to, in numbers and words: the plan's promise and what was really moved."""

from collections.abc import Iterator

from comm_plans.sizes import shown_bandwidth, shown_bytes
from orchestrator.events import CommunicationMeasured, PlanChosen
from orchestrator.words import duration_text

ROW_NAMES = ("collective", "by plan", "bytes", "predicted", "measured", "rate by plan", "other ways", "bytes")
OF_GRADIENTS = "all_reduce"  # the collective
_GIGA = 1e9


def plan_sentence(plan: PlanChosen) -> str:
    """Which plan on which network, where it came from, and how fast it is."""
    optimum = ", the network's optimum" if plan.optimal else ""
    origin = {"cache": "from the cache", "solved": "solved and verified"}[plan.source]
    speed = shown_bandwidth(bandwidth(plan))
    return f"{plan.collective} on {plan.network} by plan ({origin} in {duration_text(plan.seconds)}): {speed}{optimum}"


def measured_sentence(measured: CommunicationMeasured) -> str:
    """How many of the gradients' collectives went by plan, and the rule that said which."""
    row = measured.rows.get(OF_GRADIENTS, {})
    planned, others = (int(row.get(calls, 0)) for calls in ("planned_calls", "other_calls"))
    rate = measured_bandwidth(measured, OF_GRADIENTS)
    speed = "" if rate is None else f" at {shown_bandwidth(rate)}"
    return f"{planned:,} of {planned + others:,} {OF_GRADIENTS} by plan{speed} ({measured.rule.splitlines()[-1]})"


def bandwidth(plan: PlanChosen) -> float:
    """GB/s of the full buffer that the plan promises."""
    numerator, _, denominator = (plan.algbw or "0").partition("/")
    return int(numerator) / int(denominator or 1)


def measured_bandwidth(measured: CommunicationMeasured, collective: str) -> float | None:
    """GB/s of the full buffer over all calls by plan; None where there was none."""
    row = measured.rows.get(collective)
    if row is None or not row["measured_seconds"]:
        return None
    return row["planned_bytes"] / row["measured_seconds"] / _GIGA


def rows(measured: CommunicationMeasured) -> Iterator[list[str]]:
    """A line of text for each collective, as ROW_NAMES says."""
    for collective, row in measured.rows.items():
        rate = measured_bandwidth(measured, collective)
        yield [
            collective,
            f"{int(row['planned_calls']):,}",
            shown_bytes(row["planned_bytes"]),
            duration_text(row["predicted_seconds"]),
            duration_text(row["measured_seconds"]),
            "–" if rate is None else shown_bandwidth(rate),
            f"{int(row['other_calls']):,}",
            shown_bytes(row["other_bytes"]),
        ]
