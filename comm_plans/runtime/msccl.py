"""Plans handed to MSCCL or RCCL, which run them on GPUs in place of NCCL's own algorithms.

Call `hand_over` on every rank before `torch.distributed.init_process_group("nccl")` with one of these libraries in
NCCL's place; NCCL itself knows nothing of the variables. Written from the libraries' documents; never run on GPUs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, MutableMapping
from pathlib import Path

from comm_plans.exports.msccl_xml import msccl_xml
from comm_plans.files import write_atomically
from comm_plans.plan import Plan


def hand_over(plans: Iterable[Plan], folder: str | Path, environment: MutableMapping[str, str] = os.environ) -> None:
    """Write the XML of each plan into `folder`, made if missing, and point the libraries' variables there.

    The folder should hold nothing else: RCCL reads all of it. Plans with a root are left out, since the libraries would
    use them for every root. Raises PlansError for a plan that XML cannot express, before anything is written.
    """
    texts = {plan.collective: msccl_xml(plan)[0] for plan in plans if plan.root is None}
    place = Path(folder).resolve()
    place.mkdir(parents=True, exist_ok=True)
    paths = [place / f"{collective}.xml" for collective in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_atomically(path, text.encode())
    environment["MSCCL_XML_FILES"] = ":".join(map(str, paths))
    environment["NCCL_ALGO"] = "MSCCL,RING,TREE"
    environment["MSCCL_ALGO_DIR"] = str(place)
    environment["RCCL_MSCCL_FORCE_ENABLE"] = "1"
