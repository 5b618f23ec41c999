"""How long a call may take follows from what such calls took."""

from orchestrator.cluster.patience import Patience


def test_nothing_is_known_at_first() -> None:
    patience = Patience(call_seconds=1800)
    assert patience.limit("train", 16) == 600
    assert patience.limit("build") == 1800
    assert Patience(call_seconds=60).limit("train") == 60


def test_five_times_the_median_of_a_step_and_a_minute_at_least() -> None:
    patience = Patience()
    for seconds in (20.0, 40.0, 400.0):  # the last was a hiccup
        patience.note("train", 10, seconds)
    assert patience.limit("train", 10) == 5 * 40
    assert patience.limit("train", 1) == 60
    patience.note("build", 1, 2.0)
    assert patience.limit("build") == 180


def test_what_is_configured_comes_on_top_of_the_usual() -> None:
    patience = Patience(hang_seconds=3)
    assert patience.limit("train", 4) == 15
    patience.note("train", 4, 8.0)
    assert patience.limit("train", 4) == 3 + 8
    patience.note("build", 1, 2.0)
    assert patience.limit("build") == 180
