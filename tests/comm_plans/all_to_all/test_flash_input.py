"""Cluster files, traffic files and `comm-plan all-to-all`: what is wrong costs one sentence and exit code 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from comm_plans.all_to_all.cluster import Cluster
from comm_plans.all_to_all.cluster_file import is_cluster_file, read_cluster
from comm_plans.all_to_all.traffic import checked_traffic, read_traffic, uniform_traffic
from comm_plans.all_to_all.workloads import workload
from comm_plans.cli import main
from comm_plans.errors import ClusterError, TrafficError

GOOD = {"servers": 4, "gpus_per_server": 8, "intra_bandwidth": 450, "nic_bandwidth": 50}
H200 = {**GOOD, "intra_latency": 0, "nic_latency": 0, "intra_fabric": "switch"}


def written(folder: Path, content: object) -> Path:
    path = folder / "cluster.yaml"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def saved(folder: Path, matrix: object) -> Path:
    path = folder / "traffic.npy"
    np.save(path, matrix)
    return path


def test_json_and_yaml_say_the_same(tmp_path):
    text = "servers: 3\ngpus_per_server: [8, 4, 8]\nintra_bandwidth: 448.0\nnic_bandwidth: 25/2\nintra_fabric: mesh\n"
    expected = Cluster((8, 4, 8), 448, 12.5, intra_fabric="mesh")
    assert read_cluster(written(tmp_path, text)) == expected
    document = {"servers": 3, "gpus_per_server": [8, 4, 8], "intra_bandwidth": 448, "nic_bandwidth": 12.5}
    assert read_cluster(written(tmp_path, {**document, "intra_fabric": "mesh"})) == expected


def test_a_topology_is_no_cluster(tmp_path):
    assert is_cluster_file(written(tmp_path, GOOD))
    assert not is_cluster_file(written(tmp_path, {"ranks": ["a", "b"], "cables": [["a", "b", 1]]}))
    assert not is_cluster_file(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe")
    assert not is_cluster_file(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"servers": 0}, "servers is '0'; give a whole number from 1 to 4096"),
        ({"servers": 1.5}, "servers is '1.5'; give a whole number"),
        ({"servers": 4096}, "a cluster has 1 to 4096 GPUs"),
        ({"servers": [1]}, "servers is "),
        ({"gpus_per_server": "many"}, "gpus_per_server is 'many'; give a plain number"),
        ({"gpus_per_server": [8, 8]}, "gpus_per_server lists 2 servers, but servers is 4"),
        ({"servers": 1, "gpus_per_server": 4096}, "a server of 4096 GPUs is too large"),
        ({"intra_bandwidth": 0}, "intra_bandwidth is 0; give more than 0"),
        ({"nic_bandwidth": -1}, "nic_bandwidth is -1; give more than 0"),
        ({"nic_bandwidth": "nan"}, "nic_bandwidth is 'nan'; give a plain number"),
        ({"nic_bandwidth": "1e999"}, "nic_bandwidth is "),
        ({"nic_latency": -1e-6}, "nic_latency is -1e-06; give 0 to 1 seconds"),
        ({"intra_fabric": "ring"}, "intra_fabric is 'ring'; write switch or mesh"),
        ({"nics": 8}, "the key 'nics' is unknown; the keys are servers"),
    ],
)
def test_wrong_clusters_are_refused(tmp_path, change, sentence, capsys):
    path = written(tmp_path, {**GOOD, **change})
    with pytest.raises(ClusterError, match=sentence) as error:
        read_cluster(path)
    assert str(error.value).startswith(str(path))
    assert main(["all-to-all", str(path), "--json"]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"comm-plan: {error.value}\n")


def test_a_cluster_needs_all_its_keys(tmp_path):
    with pytest.raises(ClusterError, match="nic_bandwidth is missing"):
        read_cluster(written(tmp_path, {key: GOOD[key] for key in GOOD if key != "nic_bandwidth"}))


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        (np.zeros((3, 4)), r"the traffic has the shape \(3, 4\); give a square matrix"),
        (np.zeros(4), r"the traffic has the shape \(4,\); give a square matrix"),
        (np.array([[0, -1], [0, 0]]), "from rank 0 to rank 1, -1, is negative"),
        (np.array([[0, 0], [np.nan, 0]]), "from rank 1 to rank 0, nan, is not finite"),
        (np.array([[0, np.inf], [0, 0]]), "from rank 0 to rank 1, inf, is not finite"),
        (np.array([[0, 0.5], [0, 0]]), "from rank 0 to rank 1, 0.5, is not a whole number"),
        (np.array([[0, 2**61], [2**61, 0]]), "adds up to 2⁶² bytes or more"),
        (np.array([[0, 1e300], [0, 0]]), "adds up to 2⁶² bytes or more"),
        (np.array([[0, 2**63 + 1], [0, 0]], np.uint64), "adds up to 2⁶² bytes or more"),
        (np.array([[True]]), "the traffic has the type bool"),
        (np.array([[0, 1], [1, 0]], complex), "the traffic has the type complex128"),
        (np.array([["a", "b"], ["c", "d"]]), "the traffic has the type <U1"),
    ],
)
def test_wrong_traffic_is_refused(tmp_path, matrix, sentence):
    path = saved(tmp_path, matrix)
    with pytest.raises(TrafficError, match=sentence) as error:
        read_traffic(path)
    assert str(error.value).startswith(str(path))


def test_files_that_hold_no_matrix_are_refused(tmp_path):
    pickled = tmp_path / "pickled.npy"
    np.save(pickled, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    cut = saved(tmp_path, np.zeros((64, 64)))
    cut.write_bytes(cut.read_bytes()[:500])
    empty, text = tmp_path / "empty.npy", tmp_path / "text.npy"
    empty.write_bytes(b"")
    text.write_text("0 1\n1 0\n")
    for path in (pickled, cut, empty, text):
        with pytest.raises(TrafficError, match=r"it is no \.npy file of numbers"):
            read_traffic(path)


def test_only_ordinary_files_are_read(tmp_path):
    pipe = tmp_path / "pipe.npy"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe, Path("/dev/null")):
        with pytest.raises(TrafficError, match=r"is no ordinary file; name a \.npy file"):
            read_traffic(path)
    with pytest.raises(TrafficError, match=r"missing\.npy cannot be read: No such file"):
        read_traffic(tmp_path / "missing.npy")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 4), 'x': ((((",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776, 1099511627776)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, -4)}",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (4, 4)}",
        "(" * 5000,
        "print('hello')",
    ],
)
def test_headers_that_lie_are_refused(tmp_path, header):
    path = tmp_path / "traffic.npy"
    path.write_bytes(
        b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little") + header.encode() + b"\n" + bytes(128)
    )
    with pytest.raises(TrafficError, match=r"it is no \.npy file of numbers|has the type"):
        read_traffic(path)


def test_whole_numbers_of_any_type_are_taken():
    for kind in (np.int8, np.uint16, np.int64, np.uint64, np.float32, np.float64):
        traffic = checked_traffic(np.array([[0, 7], [3, 0]], kind))
        assert traffic.dtype == np.int64
        assert traffic.tolist() == [[0, 7], [3, 0]]
    assert uniform_traffic(3, 5).tolist() == [[0, 5, 5], [5, 0, 5], [5, 5, 0]]


def asked(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    assert main(["all-to-all", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_command_answers_in_json(tmp_path, capsys):
    cluster = written(tmp_path, H200)
    answer = asked(capsys, cluster, "--traffic", saved(tmp_path, workload("adv_gpu0", 4, 8)), "--mode", "faithful")
    assert answer["completion_seconds"] / answer["lower_bound_seconds"] == pytest.approx(1 + 2 * 7 / 9)
    assert answer["stages"] == 1
    assert answer["verified"] is True
    assert answer["plan_seconds"] > 0
    best = asked(capsys, cluster, "--traffic", saved(tmp_path, workload("adv_gpu0", 4, 8)))
    assert best["completion_seconds"] <= 1.1 * best["lower_bound_seconds"]


def test_the_command_shows_what_other_ways_would_take(tmp_path, capsys):
    assert main(["all-to-all", str(written(tmp_path, H200))]) == 0
    told = capsys.readouterr()
    assert "992 MiB among 32 GPUs in 4 servers" in told.out
    assert "the cards of server 0 must carry all that leaves it" in told.out
    for way in ("best", "faithful", "fan-out, fair sharing", "spread-out", "rail-aligned", "hierarchical", "padded"):
        assert f"\n  {way}" in told.out
    assert "assuming 1 MiB from every GPU to every other" in told.err


def test_nothing_to_send_takes_no_time(tmp_path, capsys):
    traffic = saved(tmp_path, np.diag([2**30] * 32))
    assert main(["all-to-all", str(written(tmp_path, GOOD)), "--traffic", str(traffic)]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert first == "0 bytes among 32 GPUs in 4 servers: 0 µs"
    assert len(others) == 1


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        (np.zeros((31, 31)), "this cluster has 32 GPUs and needs 32 × 32"),
        (np.full((32, 32), -1), "is negative"),
        (np.full((32, 32), 2.0**60), "adds up to 2⁶² bytes"),
    ],
)
def test_the_command_refuses_wrong_traffic_in_a_sentence(tmp_path, capsys, matrix, sentence):
    arguments = ["all-to-all", str(written(tmp_path, H200)), "--traffic", str(saved(tmp_path, matrix))]
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = [line for line in told.err.splitlines() if line.startswith("comm-plan: ")]
    assert sentence in line


def test_the_schedule_is_written_as_a_table_that_can_be_replayed(tmp_path, capsys):
    out, traffic = tmp_path / "schedule.npz", workload("random", 2, 2)
    cluster = written(tmp_path, {**H200, "servers": 2, "gpus_per_server": 2})
    asked(capsys, cluster, "--traffic", saved(tmp_path, traffic), "--out", out)
    table = np.load(out)
    held = {(o, d): [(o, 0, int(traffic[o, d]))] for o in range(4) for d in range(4) if traffic[o, d]}
    columns = (table[name].tolist() for name in ("source", "target", "origin", "destination", "low", "high"))
    assert (np.diff(table["step"]) >= 0).all()
    for source, target, origin, destination, low, high in zip(*columns, strict=True):
        parts = held[origin, destination]
        (whole,) = [part for part in parts if part[0] == source and part[1] <= low and high <= part[2]]
        parts.remove(whole)
        parts += [(source, whole[1], low), (target, low, high), (source, high, whole[2])]
        parts[:] = [part for part in parts if part[1] < part[2]]
    for (_, destination), parts in held.items():
        assert {part[0] for part in parts} == {destination}


def test_a_schedule_has_one_form(tmp_path, capsys):
    for name in ("schedule.xml", "missing/schedule.npz"):
        assert main(["all-to-all", str(written(tmp_path, H200)), "--out", str(tmp_path / name)]) == 2
    assert "does not end in .npz" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.yaml"]


def test_modes_are_for_clusters(capsys):
    assert main(["all-to-all", "ring:ranks=4", "--mode", "faithful"]) == 2
    assert "--mode faithful is for cluster files" in capsys.readouterr().err


def test_help_loads_nothing_heavy():
    heavy = {"numpy", "numba", "scipy", "torch"}
    program = "import sys, comm_plans.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not heavy & set(loaded)
