"""`comm-plan read`: a cluster's own words, a fabric or a topology file in, a topology file out."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from comm_plans.errors import TopologyError

STANDARD_INPUT = "-"


def read(options: argparse.Namespace) -> None:
    """Print a network as a topology file; what was assumed about it goes to standard error."""
    from comm_plans import terminal
    from comm_plans.readers.rates import said_bandwidths
    from comm_plans.readers.reading import read_cluster
    from comm_plans.sources import topology_from

    said = said_bandwidths(options.bandwidth)
    files = [(name, data) for name in options.files if (data := _content(name)) is not None]
    missing = [name for name in options.files if name not in dict(files)] if len(options.files) > 1 else []
    reading = read_cluster(files, said, options.network) if files and not missing else None
    if not reading and (said or len(options.files) > 1):
        name = (missing or options.files)[0]
        raise TopologyError(f"{name} is no file that nvidia-smi, rocm-smi, NCCL or a bandwidth test wrote; name such")
    for remark in reading.remarks if reading else ():
        terminal.note(remark)
    topology = reading.topology if reading else topology_from(options.files[0])
    print(json.dumps(topology.to_document(), indent=1))


def _content(name: str) -> bytes | None:
    """What is in a file or comes from a pipe, a byte more than is allowed at most; None where there is neither."""
    from comm_plans.readers.plain_document import LARGEST

    if name == STANDARD_INPUT:
        return sys.stdin.buffer.read(LARGEST + 1)
    path = Path(name)
    if not path.exists() or path.is_dir():
        return None
    with path.open("rb") as file:
        return file.read(LARGEST + 1)
