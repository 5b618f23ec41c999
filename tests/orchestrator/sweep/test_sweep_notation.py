"""Ranges and choices as a person writes them, and what each number between 0 and 1 means in them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import UserError
from orchestrator.sweep.notation import Range, parse, searched_part
from orchestrator.sweep.space import Dimension, dimension, overrides


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("1e-4..1e-1", Range(1e-4, 1e-1, True)),
        ("0.1..0.5", Range(0.1, 0.5, False)),
        ("0..1", Range(0.0, 1.0, False)),
        ("-1..1", Range(-1.0, 1.0, False)),
        ("16..128", Range(16.0, 128.0, False)),
        ("16..160", Range(16.0, 160.0, True)),
        ("1e-4..1e-1/4", Range(1e-4, 1e-1, True, 4)),
        ("log(2,4)", Range(2.0, 4.0, True)),
        ("even(1e-4,1)/3", Range(1e-4, 1.0, False, 3)),
        ("[32,64,128]", ("32", "64", "128")),
        ("[autolrs]", ("autolrs",)),
        ("autolrs,cosine", ("autolrs", "cosine")),
        ("[],[momentum,weight_decay]", ("[]", "[momentum,weight_decay]")),
        ("{a:1,b:2}", None),
        ("'a,b'", None),
        ("../data/text.txt", None),
        ("a..b", None),
        ("0.1", None),
        ("", None),
    ],
)
def test_a_value_is_a_range_choices_or_itself(text: str, meaning: object) -> None:
    assert searched_part("key", text) == meaning


def test_the_rest_of_the_command_line_is_the_same_for_all_trials() -> None:
    asked = parse(["task=tabular", "search=random", "trials=7", "lr.rate=1e-4..1e-1", "seed=1", "~clip", "+a.b=2"][:5])
    assert (asked.search, asked.trials, asked.fixed) == ("random", 7, ("task=tabular", "seed=1"))
    assert asked.searched == {"lr.rate": Range(1e-4, 1e-1, True)}


def test_a_list_in_brackets_is_a_value_where_the_key_holds_a_list() -> None:
    words = ["lr.also=[momentum,weight_decay]", "seed=[1,2]"]
    asked = parse(words, lists=["lr.also"])
    assert asked.fixed == ("lr.also=[momentum,weight_decay]",)
    assert asked.searched == {"seed": ("1", "2")}


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("lr.rate", "'lr.rate' is no KEY=VALUE"),
        ("--multirun", "'--multirun' is no KEY=VALUE"),
        ("search=best", "search is best, and must be one of bayes, random, grid, asha, pb2"),
        ("trials=0", "trials is 0, and must be a number from 1 on"),
        ("trials=many", "trials is many"),
        ("lr.rate=1..1", "lr.rate=1..1 is empty"),
        ("lr.rate=0.1..0.01", "lr.rate=0.1..0.01 is reversed: put the lower end first"),
        ("lr.rate=nan..1", "is no range of numbers: write both ends"),
        ("lr.rate=1..inf", "is no range of numbers"),
        ("lr.rate=1..", "is no range of numbers"),
        ("lr.rate=log(a,b)", "is no range of numbers"),
        ("lr.rate=log(0,1)", "has decades down to 0 or below"),
        ("lr.rate=0..1/1", "asks for fewer values than it has ends"),
        ("seed=[]", "seed has an empty choice or one twice"),
        ("seed=[1,1]", "seed has an empty choice or one twice"),
        ("seed=1,", "seed has an empty choice"),
    ],
)
def test_wrong_words_are_a_sentence(word: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        parse([word])
    assert sentence in str(caught.value)


ranges = st.builds(
    lambda low, width, logarithmic: Range(low, low + width, logarithmic),
    st.floats(1e-6, 1e3),
    st.floats(1e-3, 1e4),
    st.booleans(),
)


@given(ranges, st.floats(0, 1))
def test_values_lie_within_their_range_and_know_their_place(where: Range, share: float) -> None:
    ranged = dimension("key", where, 0.5)
    value = ranged.value(share)
    assert isinstance(value, float)
    assert where.low <= value <= where.high
    assert ranged.share(value) == pytest.approx(share, abs=1e-6)


@given(st.integers(1, 50), st.integers(1, 50), st.booleans(), st.floats(0, 1))
def test_whole_keys_have_whole_values_and_all_of_them(low: int, width: int, logarithmic: bool, share: float) -> None:
    ranged = dimension("key", Range(float(low), float(low + width), logarithmic), 7)
    assert isinstance(ranged.value(share), int)
    assert {ranged.value(at / 5000) for at in range(5001)} == set(range(low, low + width + 1))


def test_a_counted_range_has_both_its_ends() -> None:
    counted = dimension("key", Range(1e-4, 1e-1, True, 4), 0.5)
    assert counted.choices == pytest.approx((1e-4, 1e-3, 1e-2, 1e-1))
    assert dimension("key", Range(1.0, 4.0, False, 3), 2).choices == (1, 2, 4)


@pytest.mark.parametrize(
    ("where", "configured", "sentence"),
    [
        (Range(0.5, 4.0, False), 3, "key is a whole number, 3, and its range has other ends"),
        (Range(0.0, 1.0, False), True, "key is True, which has no range"),
        (Range(0.0, 1.0, False), "gloo", "key is 'gloo', which has no range"),
        (Range(0.0, 1.0, False), {"a": 1}, "which has no range"),
    ],
)
def test_what_has_no_such_range_is_told(where: Range, configured: object, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        dimension("key", where, configured)


@given(st.floats(1e-300, 1e300))
def test_numbers_reach_the_configuration_whole(value: float) -> None:
    (word,) = overrides({"lr.rate": value})
    assert float(word.removeprefix("lr.rate=")) == value


def test_choices_share_the_way_evenly() -> None:
    choices = Dimension("lr", ("autolrs", "cosine", "constant"))
    assert [choices.value(share) for share in (0.0, 0.4, 0.999, 1.0)] == ["autolrs", "cosine", "constant", "constant"]
    assert math.isclose(choices.share("cosine"), 0.5)
