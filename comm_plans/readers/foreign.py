"""Files that are taken for topology files and are something else: what they look like, and what to do with them."""

from __future__ import annotations

import re

READ = "comm-plan read {path} > topology.json makes a topology file of it"
ELSEWHERE = "write hosts and switches into a topology file instead"
KINDS = (
    (r"^[ \t]*<(\?xml|!--|!DOCTYPE|system|graphs)\b", "XML such as NCCL's topology", READ),
    (
        r"^[^\w\n]*(\x1b\[\d*m)?GPU ?\d+\s+(GPU|NIC|mlx|X\b|0\b|PIX|PXB|PHB|NODE|SYS|NV\d)",
        "a matrix of links of GPUs",
        READ,
    ),
    (r"Bandwidth .{0,40}Matrix \(GB/s\)|GPU\(row\)", "the output of a bandwidth test", READ),
    (
        r"^(Ca|Switch)\s+\d+ \"|^(CA|SW)\s+\d+\s+\d+ 0x|^(ca|switch)guid=",
        "InfiniBand cables (ibnetdiscover)",
        ELSEWHERE,
    ),
    (r"^Machine .*\(|^ +NUMANode L#", "the output of lstopo, which tells no bandwidths between GPUs", ELSEWHERE),
)


def foreign(text: str, path: str) -> str | None:
    """A sentence on what the text looks like and what to do with it; None where it looks like nothing known."""
    for pattern, kind, advice in KINDS:
        if re.search(pattern, text, re.MULTILINE):
            return f"{path} looks like {kind}; {advice.format(path=path)}"
    return None
