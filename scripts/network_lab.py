"""A network from a topology file, made of Linux network namespaces: real TCP over links of the rates it states.

    sudo .venv/bin/python scripts/network_lab.py up conf/topologies/star.yaml
    sudo .venv/bin/python scripts/network_lab.py run conf/topologies/star.yaml -- python train.py
    sudo .venv/bin/python scripts/network_lab.py degrade conf/topologies/star.yaml h0-switch 10mbit
    sudo .venv/bin/python scripts/network_lab.py cut conf/topologies/star.yaml h0-switch
    sudo .venv/bin/python scripts/network_lab.py down

`run` starts COMMAND once a rank, with the environment that torch.distributed reads, in the lab that is up or in one
that comes and goes with it. `up --ray` adds a Ray node a rank, on a network beside the shaped one. A link that was cut
is whole again when the lab has been down and up; one that was degraded also by `degrade` with its old rate.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from lab import faults, life
from lab.ranks import run_command
from lab.rates import parse_rate, shown_rate
from lab.report import reachability, report

from comm_plans.errors import PlansError
from comm_plans.lab_state import LabState


def main() -> int:
    """Run one command; returns the exit code. A person's mistake is one sentence on standard error and exit code 2."""
    _clean_up_when_told_to_end()
    options = _parser().parse_args()
    try:
        return int(options.act(options) or 0)
    except PlansError as error:
        print(f"network_lab: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        where = error.filename or "standard output"
        print(f"network_lab: {where}: {error.strerror}; run down, then up again", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _clean_up_when_told_to_end() -> None:
    """A signal becomes an exception, so that what is on the way is taken down; one that nohup ignores stays ignored."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) != signal.SIG_IGN:
            signal.signal(ending, lambda number, frame: sys.exit(128 + number))


def up(options: argparse.Namespace) -> None:
    """Build the lab, or find it standing."""
    print(report(life.ensure(options.file, options.ray)))


def run(options: argparse.Namespace) -> int:
    """Run a command on every rank."""
    with life.standing(options.file) as state:
        return run_command(state, options.run)


def degrade(options: argparse.Namespace) -> None:
    """Change the rate of a link."""
    rate = parse_rate(options.rate)
    faults.degrade(life.load_for(options.file), options.link, rate)
    print(f"{options.link} has {shown_rate(rate)} each way")


def cut(options: argparse.Namespace) -> None:
    """Pull a cable."""
    state = faults.cut(life.load_for(options.file), options.link)
    print(f"{options.link} is cut; {reachability(state)}")


def down(options: argparse.Namespace) -> None:
    """Remove the lab."""
    print("the lab is down" if life.down() else "no lab is up")


def status(options: argparse.Namespace) -> None:
    """Say what stands."""
    print(report(LabState.load()))


class _Parser(argparse.ArgumentParser):
    """One sentence and exit code 2 instead of the usage text."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    building = _add(commands, "up", up, "build the lab", "file")
    building.add_argument("--ray", action="store_true", help="start a Ray node for each rank")
    running = _add(commands, "run", run, "run a command on every rank", "file")
    running.add_argument("run", nargs="+", metavar="-- COMMAND", help="what to run")
    _add(commands, "degrade", degrade, "give both directions of a link another rate, at once", "file", "link", "rate")
    _add(commands, "cut", cut, "pull a cable; what can goes around it", "file", "link")
    _add(commands, "down", down, "remove the lab and end what runs in it")
    _add(commands, "status", status, "say what stands")
    return parser


HELP = {
    "file": "a topology file",
    "link": "the names of its ends: h0-switch",
    "rate": "10mbit, or GB/s as in the topology file: 0.00125",
}


def _add(commands: Any, name: str, act: Any, words: str, *arguments: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=words)
    command.set_defaults(act=act)
    for argument in arguments:
        kind = Path if argument == "file" else str
        command.add_argument(argument, metavar=argument.upper(), type=kind, help=HELP[argument])
    return command


if __name__ == "__main__":
    sys.exit(main())
