"""Who takes part in a pass, whatever comes: all are served to their end, in bounded room, nobody's keys overwritten."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainers.generation.cache_plan import PAGE, CachePlan
from trainers.generation.kv_cache import KVCache
from trainers.generation.length_prediction import LengthPrediction
from trainers.generation.requests import Request
from trainers.generation.scheduler import Part, Scheduler
from trainers.generation.sequence import Sequence
from trainers.generation.tiers.keeping import Forgetting

CONTEXT = 26 * PAGE
PAGES = 28
STOP = 7


def served(
    shapes: list[tuple[int, int]], batch: int, pass_tokens: int, together: bool, ends: dict[int, int] | None = None
) -> list[list[Part]]:
    """Drive a scheduler as the engine does, a pass ahead of what is known, without a model; the passes it asked for.

    ends: of sequences whose end is noticed, by a stop token, after so many tokens.
    """
    cache = KVCache(CachePlan(1, 1, 1, batch, CONTEXT, limit=PAGES * PAGE * 8), torch.device("cpu"))
    sequences = [request_of(number, *shape, (ends or {}).get(number), cache) for number, shape in enumerate(shapes)]
    scheduler, passes, seen = Scheduler(sequences, cache.pages, batch, pass_tokens, together, Forgetting()), [], 0
    while parts := scheduler.next_pass():
        passes.append(parts)
        check_pass(parts, batch, pass_tokens, together)
        for part in [part for parts in passes[seen:-1] for part in parts]:
            accept(part, ends or {})
        seen = len(passes) - 1
    for part in passes[-1]:
        accept(part, ends or {})
    scheduler.next_pass()
    assert not scheduler.busy
    assert cache.pages.free == cache.pages.count
    for sequence, (prompt, new) in zip(sequences, shapes, strict=True):
        most = (ends or {}).get(sequence.number, new)
        assert len(sequence.completion.tokens) == min(new, CONTEXT + 1 - prompt, most)
    return passes


def request_of(number: int, prompt: int, new: int, end: int | None, cache: KVCache) -> Sequence:
    stop = frozenset() if end is None else frozenset({STOP})
    return Sequence(number, Request((1,) * prompt, new, stop_tokens=stop), cache, CONTEXT)


def accept(part: Part, ends: dict[int, int]) -> None:
    sequence = part.sequence
    if part.complete and not sequence.completion:
        produced = len(sequence.tokens) - len(sequence.request.prompt) + 1
        sequence.accept(STOP if produced == ends.get(sequence.number) else 0)


def check_pass(parts: list[Part], batch: int, pass_tokens: int, together: bool) -> None:
    assert 1 <= len({part.sequence.number for part in parts}) == len(parts) <= batch
    decoding = [part.decoding for part in parts]
    assert decoding == sorted(decoding, reverse=True)
    tokens = sum(len(part.positions) for part in parts)
    assert tokens <= max(pass_tokens, sum(decoding) + 1)
    assert tokens >= pass_tokens or all(part.complete for part in parts), "room is left and a prompt is cut"
    places = [place for part in parts for place in part.sequence.table.places(0, part.positions.stop)]
    slots = [slot for place in places for slot in place]
    assert len(slots) == sum(part.positions.stop for part in parts) == len(set(slots))
    assert not together or len(places) == len(parts)


ENDS = st.dictionaries(st.integers(0, 5), st.integers(1, 40))
SHAPES = st.lists(st.tuples(st.integers(1, CONTEXT), st.integers(1, 24 * PAGE)), min_size=1, max_size=6)


@settings(max_examples=30)
@given(SHAPES, st.integers(1, 6), st.integers(1, 100), st.booleans(), ENDS)
def test_all_are_served_to_their_end(shapes, batch, pass_tokens, together, ends):
    served(shapes, batch, pass_tokens, together, ends)


def begun(passes: list[list[Part]]) -> list[int]:
    return [part.sequence.number for parts in passes for part in parts if part.positions.start == 0]


def test_who_is_not_expected_to_fit_waits_and_nobody_is_preempted():
    assert begun(served([(PAGE, 20 * PAGE), (PAGE, 20 * PAGE)], batch=2, pass_tokens=1000, together=False)) == [0, 1]


def test_who_was_expected_to_end_sooner_is_preempted_and_served_again_from_its_beginning():
    shapes = [(PAGE, 20 * PAGE)] * 3
    passes = served(shapes, batch=2, pass_tokens=1000, together=False, ends={0: 5})
    assert begun(passes) == [0, 1, 2, 2]


def test_one_token_after_a_stop_token_is_decoded_and_none_after_the_last_that_was_asked_for():
    stopped = served([(4, 30)], batch=1, pass_tokens=100, together=False, ends={0: 10})
    assert [part.positions.stop for (part,) in stopped] == list(range(4, 4 + 11))
    assert len(served([(4, 10)], batch=1, pass_tokens=100, together=False)) == 10


def test_who_keeps_its_room_is_never_preempted():
    passes = served([(PAGE, 20 * PAGE), (PAGE, 20 * PAGE)], batch=2, pass_tokens=1000, together=True)
    assert begun(passes) == [0, 1]


def test_prompts_fill_a_pass_and_the_last_is_cut():
    passes = served([(30, 3), (30, 3), (30, 3)], batch=3, pass_tokens=40, together=False)
    assert [[len(part.positions) for part in parts] for parts in passes[:3]] == [[30, 10], [1, 20, 19], [1, 1, 11]]


def test_a_place_that_falls_free_is_taken_at_once():
    passes = served([(5, 2), (5, 9), (5, 9)], batch=2, pass_tokens=100, together=False)
    assert all(len(parts) == 2 for parts in passes[:8])


@given(st.lists(st.integers(1, 30)), st.integers(0, 30), st.integers(1, 30))
def test_a_length_is_expected_as_those_became_that_were_longer(lengths, produced, most):
    prediction = LengthPrediction()
    for length in lengths:
        prediction.learn(length)
    longer = [length for length in lengths if length > produced]
    assert prediction.expected(produced, most) == (min(round(sum(longer) / len(longer)), most) if longer else most)
