"""Plans of direct networks as files, by the ending of the name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from msccl_interpreter import check

from comm_plans.all_to_all.direct import direct_all_to_all
from comm_plans.all_to_all.direct.plan_files import check_file, save_plan
from comm_plans.cli import main
from comm_plans.errors import PlansError
from comm_plans.fabrics import fabric


def test_each_form(tmp_path: Path) -> None:
    result = direct_all_to_all(fabric("ring:ranks=4"))
    for ending in ("json", "csv", "xml"):
        save_plan(result, tmp_path / f"plan.{ending}")
    assert json.loads((tmp_path / "plan.json").read_text())["pair_rate"] == "1/2"
    assert (tmp_path / "plan.csv").read_text().startswith("from,to,route,layer,chunks,path\n")
    assert check((tmp_path / "plan.xml").read_text()).get("coll") == "alltoall"


def test_what_no_file_can_hold(tmp_path: Path) -> None:
    skewed = direct_all_to_all(fabric("ring:ranks=4"), np.arange(16).reshape(4, 4))
    save_plan(skewed, tmp_path / "plan.json")
    with pytest.raises(PlansError, match="send different amounts"):
        save_plan(skewed, tmp_path / "plan.xml")
    with pytest.raises(PlansError, match=r"ends in none of \.json"):
        check_file(tmp_path / "plan.txt", None)
    with pytest.raises(PlansError, match="send different amounts"):
        check_file(tmp_path / "plan.xml", skewed.demand)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_command_prints_one_object_and_writes_the_routes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "routes.csv"
    assert main(["all-to-all", "torus:shape=4x4", "--json", "--out", str(out)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["pair_rate"], answer["algbw"], answer["verified"]) == ("1/8", "2", True)
    assert answer["duality_gap"] == 0
    assert answer["solve_seconds"] > 0
    assert len(out.read_text().splitlines()) == 1 + 16 * 15


def test_command_reads_traffic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "traffic.npy", np.array([[0, 6], [2, 0]]))
    assert main(["all-to-all", "path:ranks=2,bandwidth=3", "--traffic", str(tmp_path / "traffic.npy"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pair_rate"] == "3"
    assert main(["all-to-all", "path:ranks=3", "--traffic", str(tmp_path / "traffic.npy")]) == 2
    assert "needs a row and a column for each of its 3 ranks" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["routes.txt", "nowhere/routes.csv"])
def test_command_refuses_a_file_before_it_plans(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["all-to-all", "torus:shape=10x10x10", "--out", str(tmp_path / name)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_command_compares_with_other_routes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["all-to-all", "Pi(2,8)"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "all_to_all on Pi(2,8): 0.111 GB/s (1/9) from each rank to each other one, the network's optimum"
    bars = [line.split("  ")[1:] for line in lines[2:]]
    assert [bar[0] for bar in bars][:2] == ["these routes", "shortest paths only"]
    assert [line.count("█") for line in lines[2:4]] == [40, round(40 * 9 / 11)]
    np.save(tmp_path / "traffic.npy", np.arange(64).reshape(8, 8))
    assert main(["all-to-all", "ring", "--traffic", str(tmp_path / "traffic.npy")]) == 0
    told = capsys.readouterr().out
    assert "1.723 KiB among 8 ranks in " in told
    assert "for the largest pair, " in told
    assert "\n  dimension order" in told
