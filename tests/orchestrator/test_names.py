"""Names fit everywhere, and cut ones still differ."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.names import LONGEST, LONGEST_RUN, short_name


@given(st.text(max_size=200))
def test_short_names_stay_and_long_ones_fit(name: str) -> None:
    short = short_name(name)
    assert len(short) <= LONGEST
    assert short == name or len(name) > LONGEST


def test_long_names_that_differ_at_their_end_differ() -> None:
    assert short_name("a" * 100 + "b") != short_name("a" * 100 + "c")
    assert short_name("a" * 100).startswith("a" * 55 + "-")


def test_an_actor_of_the_longest_run_has_a_name_that_fits() -> None:
    run = short_name("x" * 100, LONGEST_RUN)
    assert len(f"{run}/replica-12/rank-99") <= LONGEST
    assert len(f"evaluate-{run}/rank-999") <= LONGEST
