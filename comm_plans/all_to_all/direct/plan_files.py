"""A plan of a direct all-to-all as a file: the name's ending says in which form."""

from __future__ import annotations

from pathlib import Path

from comm_plans.all_to_all.direct.flow_problem import Indices
from comm_plans.all_to_all.direct.solve import DirectResult
from comm_plans.errors import PlansError
from comm_plans.files import check_folder, write_atomically

ENDINGS = (".json", ".csv", ".xml")


def check_file(path: Path, traffic: Indices | None) -> None:
    """Raise PlansError unless a plan for `traffic` (None: equal pairs) can be written there."""
    if path.suffix not in ENDINGS:
        raise PlansError(
            f"{str(path)[:80]!r} ends in none of .json and .csv (routes) or .xml (MSCCL, in steps); name it so"
        )
    if path.suffix == ".xml" and traffic is not None:
        from comm_plans.all_to_all.direct.msccl import check_equal

        check_equal(traffic)
    check_folder(str(path))


def save_plan(result: DirectResult, path: Path) -> None:
    """Write routes as a table, or a schedule in steps, solved for it, as MSCCL XML.

    Raises PlansError for another ending, and where the form cannot express the plan.
    """
    from comm_plans.all_to_all.direct.route_tables import as_csv, as_json, route_table

    check_file(path, result.demand)
    if path.suffix == ".xml":
        text = _steps(result)
    else:
        table = route_table(result)
        text = as_json(table) if path.suffix == ".json" else as_csv(table)
    write_atomically(path, text.encode())


def _steps(result: DirectResult) -> str:
    from comm_plans.all_to_all.direct.msccl import all_to_all_xml
    from comm_plans.all_to_all.direct.timed_flows import timed_all_to_all

    return all_to_all_xml(timed_all_to_all(result.topology, result.demand).schedule)[0]
