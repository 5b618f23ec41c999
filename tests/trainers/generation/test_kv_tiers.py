"""Tiers of keys and values: bounded whatever comes, the oldest leave, damage is noticed, names stay in the folder."""

import os
import warnings

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainers.errors import GenerationError
from trainers.generation.tiers import kv_file
from trainers.generation.tiers.disk import DiskTier
from trainers.generation.tiers.fingerprint import Fingerprint
from trainers.generation.tiers.host import HostTier
from trainers.generation.tiers.kept import Kept
from trainers.generation.tiers.tiers import Tiers
from trainers.models.transformer import Transformer

ONE = 8 + 2 * 4 * 2 * 3  # bytes of a token: its number, keys and values of 2 heads of width 3


def kept(tokens: int, seed: int = 0) -> Kept:
    torch.manual_seed(seed)
    keys, values = torch.randn(2, 1, 2, tokens, 3)
    return Kept(tuple(range(tokens)), keys.contiguous(), values.contiguous(), "weights")


def same(one: Kept | None, other: Kept) -> bool:
    return (
        one is not None
        and (one.tokens, one.model) == (other.tokens, other.model)
        and torch.equal(one.keys, other.keys)
        and torch.equal(one.values, other.values)
    )


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["put", "get", "discard"]), st.sampled_from("abcd"), st.integers(1, 12)), max_size=40
)


@given(ACTIONS, st.integers(0, 20))
def test_memory_holds_what_was_used_last_within_its_bound(actions, room):
    tier, expected = HostTier(room * ONE), {}  # from the one used longest ago
    for seed, (action, name, tokens) in enumerate(actions):
        if action == "put":
            expected.pop(name, None)
            expected[name] = kept(tokens, seed)
            leaving = drop_oldest(expected, room, name)
            assert [left for left, _ in tier.put(name, expected.get(name) or kept(tokens, seed))] == leaving
        elif action == "get":
            found = tier.get(name)
            assert found is None if name not in expected else same(found, expected[name])
            if name in expected:
                expected[name] = expected.pop(name)
        else:
            tier.discard(name)
            expected.pop(name, None)
        assert tier.bytes == sum(each.bytes for each in expected.values()) <= room * ONE


def drop_oldest(expected: dict[str, Kept], room: int, newest: str) -> list[str]:
    """The names that leave; what is too large by itself leaves alone."""
    if len(expected[newest].tokens) > room:
        del expected[newest]
        return [newest]
    leaving = []
    while sum(len(each.tokens) for each in expected.values()) > room:
        leaving.append(next(iter(expected)))
        del expected[leaving[-1]]
    return leaving


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ACTIONS, st.integers(0, 3))
def test_the_disk_keeps_to_its_bound_and_gives_back_what_was_filed(tmp_path_factory, actions, files):
    folder, limit = tmp_path_factory.mktemp("tier"), files * kv_file.size(kept(12))
    tier, last = DiskTier(folder, limit), {}
    for seed, (action, name, tokens) in enumerate(actions):
        if action == "put":
            last[name] = kept(tokens, seed)
            tier.put(name, last[name])
            assert not files or same(tier.get(name), last[name])
        elif action == "get":
            found = tier.get(name)
            assert found is None or same(found, last[name])
        else:
            tier.discard(name)
            assert tier.get(name) is None
        assert tier.bytes <= limit


def test_the_file_that_was_used_longest_ago_leaves_first_and_a_smaller_bound_holds_at_once(tmp_path):
    size = kv_file.size(kept(4))
    tier = DiskTier(tmp_path, 2 * size)
    for name in "ab":
        tier.put(name, kept(4))
        os.utime(newest(tmp_path), ns=(0, 1 + ord(name)))
    assert tier.get("a")
    assert tier.bytes == 2 * size
    tier.put("c", kept(4))
    assert [tier.get(name) is not None for name in "abc"] == [True, False, True]
    assert DiskTier(tmp_path, size).bytes == size
    assert DiskTier(tmp_path, 0).bytes == 0


def newest(folder):
    return max(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)


@pytest.mark.parametrize("name", ["../../outside", "/etc/passwd", "", "a/b", "ü\n" * 500, "\ud800"])
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    inside = tmp_path / "tier"
    tier = DiskTier(inside, 10**6)
    tier.put(name, kept(2))
    assert same(tier.get(name), kept(2))
    assert [path.parent for path in tmp_path.rglob("*.kv")] == [inside]


def test_a_damaged_file_is_warned_of_once_and_gone(tmp_path):
    tier = DiskTier(tmp_path, 10**6)
    tier.put("talk", kept(3))
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    flipped = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(0, len(whole), 7)]
    for damaged in (b"", b"\n\n", whole[:40], whole[:-1], whole + b"x", *flipped):
        path.write_bytes(damaged)
        with pytest.warns(UserWarning, match="is damaged .*; its tokens are computed again") as warned:
            assert tier.get("talk") is None
        assert len(warned) == 1
        assert not path.exists()
    path.write_bytes(whole)
    assert same(tier.get("talk"), kept(3))


def test_a_header_that_asks_for_much_takes_no_memory(tmp_path):
    path = tmp_path / "huge"
    path.write_bytes(b'0\n{"version": 1, "model": "m", "shape": [1000000, 1000000, 1000000, 1000000]}\n')
    with pytest.raises(kv_file.DamagedError, match="another length"):
        kv_file.read(path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(GenerationError, match=r"can't be a folder of key-value files .*; name another\."):
        DiskTier(tmp_path / "file", 1)


def test_a_disk_that_cannot_be_written_costs_a_warning(tmp_path):
    tier = DiskTier(tmp_path / "tier", 10**6)
    (tmp_path / "tier").rmdir()
    with pytest.warns(UserWarning, match="could not be filed"):
        tier.put("talk", kept(3))
    assert tier.get("talk") is None


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ACTIONS, st.integers(0, 30))
def test_what_leaves_memory_is_found_on_disk(tmp_path_factory, actions, room):
    folder, last = tmp_path_factory.mktemp("tiers"), {}
    with Tiers(room * ONE, folder, 10**6) as tiers:
        for seed, (action, name, tokens) in enumerate(actions):
            if action == "put":
                last[name] = kept(tokens, seed)
                tiers.put(name, last[name])
            elif action == "discard":
                tiers.discard(name)
                last.pop(name, None)
            found = tiers.get(name)
            assert found is None if name not in last else same(found, last[name])
    later = Tiers(0, folder, 10**6)
    assert all(same(later.get(name), each) for name, each in last.items())


def test_without_a_disk_what_leaves_memory_is_gone():
    with warnings.catch_warnings(), Tiers(5 * ONE) as tiers:
        warnings.simplefilter("error")
        tiers.put("a", kept(3))
        tiers.put("b", kept(4))
        assert tiers.get("a") is None
        assert same(tiers.get("b"), kept(4))


def test_other_weights_and_other_constants_have_another_fingerprint():
    torch.manual_seed(0)
    model = Transformer(16, width=16, layers=1, heads=2, key_value_heads=1)
    twin = Transformer(16, width=16, layers=1, heads=2, key_value_heads=1)
    twin.load_state_dict(model.state_dict())
    of_model = Fingerprint(model)
    before = of_model()
    assert before == of_model() == Fingerprint(twin)()
    twin.rope_base = 500_000.0
    assert Fingerprint(twin)() != before
    with torch.no_grad():
        model.norm.weight[3] += 1
    assert of_model() != before


def test_what_begins_alike_is_counted():
    assert kept(4).in_common([0, 1, 2, 3, 4]) == 4
    assert kept(4).in_common([0, 1]) == 2
    assert kept(4).in_common([0, 1, 7, 3]) == 2
    assert kept(4).in_common([5]) == 0
