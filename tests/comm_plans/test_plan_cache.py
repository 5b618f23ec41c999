"""The plan cache under renumbering, damage, forgery, and many processes at once."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from network_strategies import renumbered
from small_plans import ring_all_gather

from comm_plans import PlanCache
from comm_plans import plan as plan_module
from comm_plans.cache import HEADER, solve_cached
from comm_plans.errors import PlanError
from comm_plans.fabrics import fabric
from comm_plans.plan import Plan, Tree
from comm_plans.terminal import show_entries
from comm_plans.topology import Link, Topology
from comm_plans.verifier import verify


@pytest.fixture
def cache(tmp_path):
    return PlanCache(tmp_path / "plans")


@pytest.fixture
def kept(cache):
    """A cache that holds the ring algorithm on five ranks, and the only file in it."""
    plan = ring_all_gather(5)
    return cache, plan, cache.put(plan)


def test_what_was_put_is_got(kept):
    cache, plan, path = kept
    assert cache.get(plan.topology, "all_gather") == plan
    assert cache.get(plan.topology, "reduce_scatter") is None
    assert cache.get(plan.topology, "all_gather", trees_per_rank=1) is None
    assert cache.get(fabric("ring:ranks=6"), "all_gather") is None
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_empty_cache_misses_and_lists_nothing(cache):
    assert cache.get(fabric("ring"), "all_gather") is None
    assert cache.entries() == []
    assert cache.prune() == []
    assert not cache.folder.exists()


@pytest.mark.parametrize("seed", range(5))
def test_a_renumbered_cluster_gets_the_plan_in_its_own_numbering(kept, seed):
    cache, plan, _ = kept
    asker = renumbered(plan.topology, seed)
    got = cache.get(asker, "all_gather")
    assert got.topology == asker
    assert (got.algbw, got.optimal, got.depth) == (plan.algbw, plan.optimal, plan.depth)
    assert verify(got.to_document()).algbw == plan.algbw


def test_noise_reuses_the_plan_with_figures_that_are_true_for_the_asker(cache):
    claimed = replace(ring_all_gather(5), optimal=True, optimum=Fraction(25, 2), bottleneck=("g0", "g1", "g2", "g3"))
    cache.put(claimed)
    asker = renumbered(claimed.topology, 3, noise=0.01)
    got = cache.get(asker, "all_gather")
    slowest = min(link.bandwidth for link in asker.links)
    assert got.algbw == slowest * Fraction(5, 4)
    assert got.algbw <= got.optimum <= max(link.bandwidth for link in asker.links) * Fraction(5, 4)
    assert got.optimal == (got.algbw == got.optimum)


def test_roots_and_shards_are_part_of_the_question(cache):
    path = Topology("path", ("a", "b", "c"), (), tuple(Link(*x, Fraction(1)) for x in ("ab", "ba", "bc", "cb")))
    tree = Tree("broadcast", 0, Fraction(0), Fraction(1), ((0, 1), (1, 2)))
    plan = Plan("broadcast", path, (tree,), (Fraction(1, 3),) * 3, Fraction(1), True, Fraction(1), ("a",), root=0)
    cache.put(plan)
    assert cache.get(path, "broadcast", root=0) == plan
    assert cache.get(path, "broadcast", root=1) is None
    # From the other end the path looks the same.
    mirrored = cache.get(path, "broadcast", root=2)
    assert (mirrored.root, mirrored.trees[0].paths) == (2, ((2, 1), (1, 0)))


def test_unequal_shards_are_kept_apart(cache):
    plan = ring_all_gather(3)
    shards = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    starts = (Fraction(0), Fraction(1, 2), Fraction(3, 4))
    trees = tuple(
        replace(tree, start=start, share=share) for tree, start, share in zip(plan.trees, starts, shards, strict=True)
    )
    unequal = replace(plan, trees=trees, shards=shards, algbw=Fraction(40, 3), optimum=Fraction(20))
    cache.put(unequal, shards=[2, 1, 1])
    assert cache.get(plan.topology, "all_gather") is None
    assert cache.get(plan.topology, "all_gather", shards=[4, 2, 2]) == unequal
    turned = cache.get(plan.topology, "all_gather", shards=[1, 2, 1])
    assert turned.shards == (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4))
    assert turned.algbw == unequal.algbw


def test_options_at_their_defaults_do_not_count(kept):
    cache, plan, _ = kept
    assert cache.get(plan.topology, "all_gather", method="forest", tolerance=Fraction(0), trim=False) == plan
    assert cache.get(plan.topology, "all_gather", trim=True) is None


def test_a_wrong_plan_is_never_kept(cache):
    plan = ring_all_gather(4)
    with pytest.raises(PlanError, match="its links give"):
        cache.put(replace(plan, algbw=plan.algbw * 2))
    assert cache.entries() == []


def test_truncated_or_edited_files_are_misses(kept):
    cache, plan, path = kept
    data = path.read_bytes()
    for damaged in (
        b"",
        data[:10],
        data[: len(data) // 2],
        data[:-1],
        data + b"x",
        data.replace(b"25/2", b"26/2"),
        b"\xff" * 99,
    ):
        path.write_bytes(damaged)
        assert cache.get(plan.topology, "all_gather") is None
        (entry,) = cache.verified()
        assert entry.fault
        with pytest.raises(PlanError, match="not as it was written"):
            cache.show(path.stem)
    assert cache.prune() == [path]
    assert cache.entries() == []
    cache.put(plan)
    assert cache.get(plan.topology, "all_gather") == plan


def forge(path: Path, change) -> None:
    """Edit the plan in a cache file and put the checksum right again."""
    _, summary, document = path.read_text().splitlines()
    summary, document = json.loads(summary), json.loads(document)
    change(summary, document)
    body = f"{json.dumps(summary)}\n{json.dumps(document)}\n".encode()
    path.write_bytes(f"{HEADER} {hashlib.sha256(body).hexdigest()}\n".encode() + body)


@pytest.mark.parametrize(
    "change",
    [
        lambda summary, document: document["trees"].pop(),
        lambda summary, document: document["trees"][0]["paths"].reverse(),
        lambda summary, document: document.update(algbw="100"),
        lambda summary, document: document.update(collective="all_reduce"),
        lambda summary, document: document.pop("topology"),
        lambda summary, document: document.update(topology=fabric("ring:ranks=6").to_document()),
        lambda summary, document: [link.insert(2, link.pop() * 2) for link in document["topology"]["links"]],
        lambda summary, document: summary.update(solver_version=0),
        lambda summary, document: summary.update(options="{}{}"),
        lambda summary, document: summary.clear(),
    ],
)
def test_forged_files_are_misses_too(kept, change):
    cache, plan, path = kept
    forge(path, change)
    assert cache.get(plan.topology, "all_gather") is None


def test_a_right_plan_for_another_network_is_a_miss(kept):
    """Whatever lies under a key, the stored network is compared link by link with the asker's."""
    cache, plan, path = kept
    other = ring_all_gather(5, bandwidth=Fraction(20))
    cache.put(other).replace(path)
    assert cache.get(plan.topology, "all_gather") is None


def test_another_solver_version_solves_anew(kept, monkeypatch):
    cache, plan, path = kept
    monkeypatch.setattr(plan_module, "SOLVER_VERSION", 10**6)
    for module in ("cache", "question"):
        monkeypatch.setattr(f"comm_plans.{module}.SOLVER_VERSION", 10**6)
    assert cache.get(plan.topology, "all_gather") is None
    (entry,) = cache.verified()
    assert "another version of the solver" in entry.fault
    assert cache.prune() == [path]


def test_lists_and_shows(kept):
    cache, plan, path = kept
    (entry,) = cache.entries()
    assert (entry.key, entry.path, entry.size_bytes) == (path.stem, path, path.stat().st_size)
    assert entry.summary["collective"] == "all_gather"
    assert entry.summary["algbw"] == str(plan.algbw)
    assert time.time() - entry.saved < 3600
    assert [entry.fault for entry in cache.verified()] == [None]
    assert cache.show(path.stem[:6]) == plan
    with pytest.raises(PlanError, match="no plan in"):
        cache.show("zz")
    cache.put(ring_all_gather(6))
    with pytest.raises(PlanError, match="more than one plan"):
        cache.show("")


def test_prune_removes_leftovers_of_killed_writers_but_no_young_ones(kept):
    cache, _, path = kept
    old, young = (cache.folder / f".{path.name}.{name}" for name in ("old", "young"))
    for leftover in (old, young):
        leftover.write_bytes(b"half a pl")
    os.utime(old, (0, 0))
    assert [entry.path for entry in cache.entries()] == [path]
    assert cache.prune() == [old]
    assert young.exists()


def test_files_from_elsewhere_are_listed_as_faults_and_folders_left_alone(kept, capsys):
    cache, _, path = kept
    odd = path.with_name("odd.json")
    odd.write_text('line\n{"collective": null, "network": "\\u001b[31m", "algbw": []}\n')
    path.with_name("folder.json").mkdir()
    show_entries(cache.entries())
    assert "odd.json has no summary" in capsys.readouterr().out
    assert cache.prune() == [odd]


def test_the_default_folder_is_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert PlanCache().folder == tmp_path / "comm-plans"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert PlanCache().folder == tmp_path / ".cache" / "comm-plans"


def test_solving_through_the_cache(cache):
    topology = fabric("dgx_a100:boxes=2")
    plan, source = solve_cached(topology, "all_gather", cache=cache)
    assert (source, plan.algbw, plan.optimal) == ("solved", Fraction(1040, 3), True)
    again, source = solve_cached(renumbered(topology, 7), "all_gather", cache=cache)
    assert (source, again.algbw, again.optimal) == ("cache", Fraction(1040, 3), True)


def test_a_folder_that_cannot_be_written_costs_no_more_than_time(tmp_path):
    (tmp_path / "file").write_text("in the way")
    plan, source = PlanCache(tmp_path / "file").solve(fabric("ring:ranks=3"), "all_gather")
    assert (source, plan.optimal) == ("solved", True)


WRITER = """
import sys
sys.path.append(sys.argv[1])
from small_plans import ring_all_gather
from comm_plans import PlanCache
cache, plan = PlanCache(sys.argv[2]), ring_all_gather(12)
for turn in range(12):
    cache.put(plan)
    assert cache.get(plan.topology, "all_gather") == plan, turn
"""


def test_many_processes_at_once_see_whole_plans(tmp_path):
    command = [sys.executable, "-c", WRITER, str(Path(__file__).parent), str(tmp_path)]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    plan, seen = ring_all_gather(12), 0
    while any(writer.poll() is None for writer in writers):
        got = PlanCache(tmp_path).get(plan.topology, "all_gather")
        assert got in (None, plan)
        # Once a plan was there, it never goes away again.
        assert got is not None or not seen
        seen += got is not None
    assert [(writer.wait(), writer.stderr.read()) for writer in writers] == [(0, b"")] * 3
    assert seen
    assert len(list(tmp_path.iterdir())) == 1


def test_a_writer_killed_at_any_moment_leaves_the_old_plan_or_the_new(tmp_path):
    plan = ring_all_gather(12)
    PlanCache(tmp_path).put(plan)
    command = [
        sys.executable,
        "-c",
        WRITER.replace("range(12)", "range(10**6)"),
        str(Path(__file__).parent),
        str(tmp_path),
    ]
    for pause in (0.0, 0.11):
        writer = subprocess.Popen(command)
        time.sleep(1 + pause)
        writer.kill()
        writer.wait()
        assert PlanCache(tmp_path).get(plan.topology, "all_gather") == plan
