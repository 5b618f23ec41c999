"""Plans of direct networks as files, by the ending of the name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from msccl_interpreter import check

from comm_plans.all_to_all.direct import direct_all_to_all
from comm_plans.all_to_all.direct.plan_files import check_ending, save_plan
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
        check_ending(tmp_path / "plan.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
