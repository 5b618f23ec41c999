"""Pages of the cache: never given twice, all given back, and in one stretch wherever that is possible."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainers.generation.cache_plan import PAGE, CachePlan
from trainers.generation.kv_cache import KVCache, PageTable
from trainers.generation.pages import Pages, Stretch, merged

COUNT = 24


def numbers(stretches: list[Stretch]) -> list[int]:
    return [page for stretch in stretches for page in range(stretch.first, stretch.end)]


@given(st.lists(st.tuples(st.sampled_from(["take", "after", "together", "give"]), st.integers(0, 9)), max_size=60))
def test_pages_are_handed_out_once_and_all_come_back(actions):
    pages = Pages(COUNT)
    held: list[list[Stretch]] = []
    for action, size in actions:
        if action == "give" and held:
            pages.give_back(held.pop(size % len(held)))
        elif action == "together" and size:
            taken = pages.take_together(size)
            held += [[taken]] if taken else []
        elif action in ("take", "after") and size <= pages.free:
            held.append(pages.take(size, after=size if action == "after" else None))
            assert len(numbers(held[-1])) == size
        out = [page for stretches in held for page in numbers(stretches)]
        assert len(set(out)) == len(out) == COUNT - pages.free
        assert set(out) <= set(range(COUNT))
    for stretches in held:
        pages.give_back(stretches)
    assert pages.take_together(COUNT) == Stretch(0, COUNT)


def with_holes(*holes: Stretch) -> Pages:
    pages = Pages(COUNT)
    pages.take(COUNT)
    pages.give_back(holes)
    return pages


def test_the_smallest_hole_that_is_large_enough_is_taken():
    assert with_holes(Stretch(0, 9), Stretch(12, 4), Stretch(20, 2)).take(3) == [Stretch(12, 3)]


def test_the_place_right_after_is_preferred():
    assert with_holes(Stretch(0, 9), Stretch(12, 4)).take(2, after=12) == [Stretch(12, 2)]


def test_where_no_hole_is_large_enough_the_fewest_stretches_are_taken():
    pages = with_holes(Stretch(0, 3), Stretch(5, 6), Stretch(20, 2))
    assert pages.take_together(7) is None
    assert pages.take(8) == [Stretch(5, 6), Stretch(20, 2)]


def test_more_pages_than_are_free_are_refused_and_none_is_taken():
    pages = Pages(3)
    with pytest.raises(ValueError, match="4 pages are asked for, 3 are free"):
        pages.take(4)
    assert pages.free == 3


def test_neighbours_become_one_stretch_in_the_order_they_are_in():
    assert merged([Stretch(4, 2), Stretch(6, 1), Stretch(0, 4)]) == [Stretch(4, 3), Stretch(0, 4)]


def test_a_table_says_where_each_token_is():
    pages = with_holes(Stretch(2, 1), Stretch(7, 2))
    table = PageTable(pages)
    assert table.grow(3 * PAGE)
    assert table.places(0, 3 * PAGE) == [range(7 * PAGE, 9 * PAGE), range(2 * PAGE, 3 * PAGE)]
    assert table.places(PAGE + 3, 2 * PAGE + 5) == [range(8 * PAGE + 3, 9 * PAGE), range(2 * PAGE, 2 * PAGE + 5)]


@given(st.integers(1, 3 * PAGE), st.integers(0, 30 * PAGE))
def test_a_table_grows_by_what_it_must_and_by_what_is_spare_if_that_is_there(tokens, spare):
    pages = Pages(COUNT)
    table = PageTable(pages)
    assert table.grow(tokens, spare)
    assert table.capacity == min(-(-(tokens + spare) // PAGE), COUNT) * PAGE
    assert table.grow(tokens)  # is there already
    assert pages.free == COUNT - table.capacity // PAGE
    assert not table.grow(COUNT * PAGE + 1)
    table.release()
    assert pages.free == COUNT
    assert not table.places(0, tokens)


@given(st.permutations(range(4)), st.integers(0, 60), st.integers(0, 60))
def test_what_is_written_to_scattered_pages_is_read_in_order(order, begin, count):
    cache = KVCache(CachePlan(2, 3, 4, sequences=1, context=5 * PAGE), torch.device("cpu"))
    cache.pages.take(cache.pages.count)
    table = PageTable(cache.pages)
    for page in order:
        cache.pages.give_back([Stretch(page, 1)])
        assert table.grow(table.capacity + 1)
    end = min(begin + count, 4 * PAGE)
    everything = table.places(0, 4 * PAGE)
    slots = torch.tensor([slot for place in everything for slot in place])
    keys, values = torch.randn(3, 4 * PAGE, 4), torch.randn(3, 4 * PAGE, 4)
    cache.write(1, slots, keys, values)
    if begin < end:
        read = cache.read(1, table.places(begin, end))
        assert torch.equal(read[0], keys[:, begin:end])
        assert torch.equal(read[1], values[:, begin:end])


def test_one_place_is_read_as_a_view():
    cache = KVCache(CachePlan(1, 1, 2, sequences=1, context=4 * PAGE), torch.device("cpu"))
    keys, _ = cache.read(0, [range(5, 9)])
    assert keys.data_ptr() == cache.keys[0, 0, 5].data_ptr()
