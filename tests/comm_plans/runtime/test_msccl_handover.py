"""Plans handed to MSCCL and RCCL: the files hold the plans' XML, and the variables point there."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from live_networks import two_boxes

from comm_plans import solve
from comm_plans.errors import PlansError
from comm_plans.exports.msccl_xml import msccl_xml
from comm_plans.fabrics import fabric
from comm_plans.live import UNROOTED
from comm_plans.runtime.msccl import hand_over
from comm_plans.topology import Switch, Topology


def test_files_and_variables(tmp_path: Path) -> None:
    plans = [solve(two_boxes(), collective) for collective in UNROOTED]
    environment: dict[str, str] = {}
    hand_over([*plans, solve(two_boxes(), "broadcast", root=2)], tmp_path / "new", environment)
    files = [Path(path) for path in environment["MSCCL_XML_FILES"].split(":")]
    assert [file.read_text() for file in files] == [msccl_xml(plan)[0] for plan in plans]
    assert [ElementTree.parse(file).getroot().get("coll") for file in files] == [
        "allreduce",
        "allgather",
        "reduce_scatter",
    ]
    assert sorted((tmp_path / "new").iterdir()) == sorted(files)
    assert environment["MSCCL_ALGO_DIR"] == str(tmp_path / "new")
    assert environment["NCCL_ALGO"].startswith("MSCCL,")
    assert environment["RCCL_MSCCL_FORCE_ENABLE"] == "1"


def test_nothing_is_written_for_a_plan_that_xml_cannot_express(tmp_path: Path) -> None:
    star = fabric("star:ranks=4")
    able = Topology(star.name, star.ranks, (Switch(star.switches[0].name, multicast=True),), star.links)
    with pytest.raises(PlansError, match="multicast"):
        hand_over([solve(able, "all_gather")], tmp_path / "new", {})
    assert not (tmp_path / "new").exists()
