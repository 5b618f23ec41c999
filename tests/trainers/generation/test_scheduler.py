"""Who takes part in a pass, whatever comes: all are served to their end, in bounded room, nobody's keys overwritten."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainers.generation.cache_plan import PAGE, CachePlan
from trainers.generation.kv_cache import KVCache
from trainers.generation.requests import Request
from trainers.generation.scheduler import Part, Scheduler
from trainers.generation.sequence import Sequence

CONTEXT = 26 * PAGE
PAGES = 28


def served(shapes: list[tuple[int, int]], batch: int, pass_tokens: int, together: bool) -> list[list[Part]]:
    """Drive a scheduler as the engine does, without a model; the passes it asked for."""
    cache = KVCache(CachePlan(1, 1, 1, batch, CONTEXT, limit=PAGES * PAGE * 8), torch.device("cpu"))
    sequences = [
        Sequence(number, Request((1,) * prompt, new), cache, CONTEXT) for number, (prompt, new) in enumerate(shapes)
    ]
    scheduler, passes = Scheduler(sequences, batch, pass_tokens, together), []
    while scheduler.busy:
        passes.append(scheduler.next_pass())
        check_pass(passes[-1], batch, pass_tokens, together)
        for part in passes[-1]:
            part.sequence.stored = part.positions.stop
            if part.complete:
                part.sequence.decoding = True
                part.sequence.accept(0)
        scheduler.retire()
    assert cache.pages.free == cache.pages.count
    for sequence, (prompt, new) in zip(sequences, shapes, strict=True):
        assert len(sequence.completion.tokens) == min(new, CONTEXT + 1 - prompt)
    return passes


def check_pass(parts: list[Part], batch: int, pass_tokens: int, together: bool) -> None:
    assert 1 <= len({part.sequence.number for part in parts}) == len(parts) <= batch
    decoding = [part.sequence.decoding for part in parts]
    assert decoding == sorted(decoding, reverse=True)
    assert sum(len(part.positions) for part in parts) <= max(pass_tokens, sum(decoding) + 1)
    places = [place for part in parts for place in part.sequence.table.places(0, part.positions.stop)]
    slots = [slot for place in places for slot in place]
    assert len(slots) == sum(part.positions.stop for part in parts) == len(set(slots))
    assert not together or len(places) == len(parts)


SHAPES = st.lists(st.tuples(st.integers(1, CONTEXT), st.integers(1, 24 * PAGE)), min_size=1, max_size=6)


@settings(deadline=None, max_examples=30)
@given(SHAPES, st.integers(1, 6), st.integers(1, 100), st.booleans())
def test_all_are_served_to_their_end(shapes, batch, pass_tokens, together):
    served(shapes, batch, pass_tokens, together)


def test_who_is_preempted_is_served_again_from_its_beginning():
    passes = served([(PAGE, 20 * PAGE), (PAGE, 20 * PAGE)], batch=2, pass_tokens=1000, together=False)
    begun = [part.sequence.number for parts in passes for part in parts if part.positions.start == 0]
    assert begun == [0, 1, 1]


def test_who_keeps_its_room_is_never_preempted():
    passes = served([(PAGE, 20 * PAGE), (PAGE, 20 * PAGE)], batch=2, pass_tokens=1000, together=True)
    begun = [part.sequence.number for parts in passes for part in parts if part.positions.start == 0]
    assert begun == [0, 1]


def test_prompts_fill_a_pass_and_the_last_is_cut():
    passes = served([(30, 3), (30, 3), (30, 3)], batch=3, pass_tokens=40, together=False)
    assert [[len(part.positions) for part in parts] for parts in passes[:3]] == [[30, 10], [1, 20, 19], [1, 1, 11]]


def test_a_place_that_falls_free_is_taken_at_once():
    passes = served([(5, 2), (5, 9), (5, 9)], batch=2, pass_tokens=100, together=False)
    assert all(len(parts) == 2 for parts in passes[:8])
