"""The command `comm-plan`: networks in, plans, times and exports out.

Here is what can be asked and how faults are told: wrong input is one sentence on standard error and exit code 2. What
the commands do is in `commands`. Nothing heavy is imported before it is needed: `comm-plan --help` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from io import StringIO, TextIOWrapper
from typing import Any, NoReturn

from comm_plans import commands as do
from comm_plans.all_to_all.command import all_to_all
from comm_plans.direct_connect.command import wire
from comm_plans.errors import PlansError
from comm_plans.readers.command import read

TOPOLOGY = "a topology file, a fabric by name such as dgx_a100:boxes=2, or a wiring such as L^2(C(16,3,4))"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `comm-plan`; returns the exit code."""
    _let_all_text_through()
    parsed = _parser().parse_args(arguments)
    try:
        code = int(parsed.run(parsed) or 0)
        sys.stdout.flush()  # a full disk or a closed pipe shows here
        return code
    except PlansError as error:
        return _refuse(str(error))
    except BrokenPipeError:  # whoever read our output has had enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _refuse(f"{error.filename or 'standard output'} cannot be used: {error.strerror or error}")
    except KeyboardInterrupt:
        return 130


def _let_all_text_through() -> None:
    """A closed output swallows text, and one that cannot spell a character shows its number."""
    sys.stdout, sys.stderr = sys.stdout or StringIO(), sys.stderr or StringIO()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _refuse(sentence: str) -> int:
    """Names in a sentence may come from a file; none of them gets to command the terminal."""
    shown = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in sentence)
    print(f"comm-plan: {shown}", file=sys.stderr)
    return 2


class _Parser(argparse.ArgumentParser):
    """One sentence and exit code 2 instead of the usage text."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="comm-plan", description="Communication plans at the optimum of a network.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_solve(commands)
    _add_plan_commands(commands)
    _add_all_to_all(commands)
    _add_wire(commands)
    _add_read(commands)
    _add_cache_commands(commands)
    return parser


def _add(commands: Any, name: str, run: Any, words: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=words, description=f"{words[0].upper()}{words[1:]}."
    )
    command.set_defaults(run=run)
    return command


def _add_solve(commands: Any) -> None:
    command = _add(commands, "solve", do.solve, "find the best plan of a collective on a network")
    command.add_argument("topology", metavar="TOPOLOGY", help=TOPOLOGY)
    command.add_argument(
        "--collective",
        required=True,
        metavar="NAME",
        help="all_gather, reduce_scatter, all_reduce, broadcast or reduce",
    )
    command.add_argument("--method", default="forest", help="forest (default), breadth_first or expansion")
    command.add_argument("--trees-per-rank", type=int, metavar="K", help="exactly K trees for each rank")
    command.add_argument("--root", metavar="RANK", help="where a broadcast starts or a reduce ends: name or number")
    command.add_argument(
        "--tolerance", default="0", metavar="PART", help="accept so much less than the optimum for fewer trees (0.02)"
    )
    command.add_argument("--trim", action="store_true", help="use less of a switch that sends more than it receives")
    command.add_argument("--out", metavar="FILE", help="write the plan (docs/plan-format.md)")
    command.add_argument("--json", action="store_true", help="print one JSON object")


def _add_all_to_all(commands: Any) -> None:
    command = _add(commands, "all-to-all", all_to_all, "plan how every rank sends to every other, skewed or not")
    command.add_argument("network", metavar="CLUSTER_OR_TOPOLOGY", help=f"a cluster file, or {TOPOLOGY}")
    command.add_argument(
        "--traffic", metavar="MATRIX", help="a .npy file: bytes from each rank (row) to each other one"
    )
    command.add_argument(
        "--mode", choices=("best", "faithful"), default="best", help="of a cluster: best, or as FLASH was published"
    )
    command.add_argument(
        "--out", metavar="FILE", help="write the schedule of a cluster (.npz), routes (.json, .csv) or MSCCL XML (.xml)"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")


def _add_wire(commands: Any) -> None:
    command = _add(commands, "wire", wire, "find which direct wirings of some nodes and ports are best")
    command.add_argument("--nodes", required=True, metavar="N", help="number of nodes, or 2..64 for several")
    command.add_argument("--degree", required=True, type=int, metavar="D", help="ports of each node")
    command.add_argument("--formulas", action="store_true", help="published graphs and formulas only, nothing measured")
    command.add_argument("--bytes", default="1MiB", metavar="SIZE", help="message to choose for (default: 1MiB)")
    command.add_argument("--alpha", type=float, metavar="SECONDS", help="latency of a step (default: 10e-6)")
    command.add_argument("--bandwidth", type=float, metavar="GB/S", help="of a port, one way (default: 1)")
    command.add_argument("--wiring", metavar="FILE", help="write which port goes where in the best choice, as CSV")
    command.add_argument("--show", action="store_true", help="draw small wirings")
    command.add_argument("--json", action="store_true", help="print one JSON array")


def _add_read(commands: Any) -> None:
    command = _add(commands, "read", read, "print what a cluster says of itself, or any network, as a topology file")
    command.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="output of nvidia-smi topo -m, rocm-smi --showtopo, NCCL (NCCL_TOPO_DUMP_FILE), ibnetdiscover or a "
        f"bandwidth test, one file a host, - for standard input; else {TOPOLOGY}",
    )
    command.add_argument(
        "--bandwidth",
        metavar="WORD=GB/S",
        action="append",
        default=[],
        help="one way, of what the file calls by that word: NV12=300, PCIE=24, NIC=25, mlx5_0=50; may be repeated",
    )
    command.add_argument(
        "--network",
        choices=("switch", "rails"),
        default="switch",
        help="what joins the NICs of several hosts: one switch (default), or one for the first of each, and so on",
    )


def _add_cache_commands(commands: Any) -> None:
    parser = commands.add_parser("cache", help="look after the plans kept on this machine")
    caring = parser.add_subparsers(dest="cache_command", required=True, metavar="COMMAND")
    listing = _add(caring, "list", do.cache_list, "list the plans")
    listing.add_argument("--json", action="store_true", help="print one JSON array")
    showing = _add(caring, "show", do.cache_show, "show one plan")
    showing.add_argument("key", metavar="KEY", help="its key, or the beginning of it")
    showing.add_argument("--json", action="store_true", help="print one JSON object")
    _add(caring, "verify", do.cache_verify, "replay every plan; exit code 1 if one is of no use")
    _add(caring, "prune", do.cache_prune, "remove what is of no use: broken files, plans of other solver versions")


def _add_plan_commands(commands: Any) -> None:
    checking = _add(commands, "verify", do.verify, "replay a plan and check that every byte arrives exactly once")
    checking.add_argument("plan", metavar="PLAN", help="a plan file")
    checking.add_argument("--topology", metavar="TOPOLOGY", help="check on this network instead of the plan's own")
    timing = _add(commands, "simulate", do.simulate, "say how long a plan takes")
    timing.add_argument("plan", metavar="PLAN", help="a plan file")
    timing.add_argument("--bytes", required=True, metavar="SIZE", help="size of the full buffer: 4096, 64MB, 1GiB, 1e9")
    timing.add_argument("--latency", type=float, metavar="SECONDS", help="of a hop where the topology states none")
    timing.add_argument("--chunks", type=int, metavar="P", help="chunks a tree (default: the best count)")
    timing.add_argument("--json", action="store_true", help="print one JSON object")
    writing = _add(commands, "export", do.export, "write a plan for other programs or as a picture")
    writing.add_argument("plan", metavar="PLAN", help="a plan file")
    writing.add_argument("--format", required=True, choices=("msccl", "svg"), help="MSCCL XML or an SVG picture")
    writing.add_argument("--out", required=True, metavar="FILE", help="the file to write")


if __name__ == "__main__":
    sys.exit(main())
