"""Whatever is done to a text, the readers answer with a topology or with one sentence, and soon."""

from __future__ import annotations

from time import monotonic

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reader_texts import FIXTURES, FOLDER

from comm_plans.errors import PlansError
from comm_plans.readers.reading import read_cluster
from comm_plans.topology import Topology

PATIENCE = 20.0  # seconds, a hundred times what any text here takes
TOKENS = [
    "GPU0",
    "GPU1",
    "X",
    "NV18",
    "NV1",
    "SYS",
    "\t",
    "\n",
    " ",
    "\x1b[0m",
    "\x1b[2J",
    "\r",
    "0",
    "1e999",
    "-1",
    "<",
    "</cpu>",
]
TOKENS += [
    '"',
    "&",
    "&lt;",
    'count="999999999999"',
    "9" * 5000,
    "\x00",
    "GT/s",
    "=",
    ",",
    "D\\D",
    "N/A",
    "￿",
    "<!DOCTYPE",
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A fixture with some parts cut out, doubled, moved or replaced."""
    data = draw(st.sampled_from([(FOLDER / name).read_bytes() for name in FIXTURES]))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from([0, 1, 3, 10, 100, 10_000])))
        put = draw(
            st.one_of(
                st.sampled_from([token.encode() for token in TOKENS]),
                st.binary(max_size=8),
                st.just(data[start:end] * 2),
            )
        )
        data = data[:start] + put + data[end:]
    return data


def answers(files: list[tuple[str, bytes]], network: str) -> None:
    started = monotonic()
    sentence, reading = "", None
    try:
        reading = read_cluster(files, {}, network)
    except PlansError as error:
        sentence = str(error)
    assert "\n" not in sentence
    assert len(sentence) < 1000
    assert reading is None or Topology.from_document(reading.topology.to_document()) == reading.topology
    assert monotonic() - started < PATIENCE


@given(mutated())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_damaged_texts_never_crash(data: bytes) -> None:
    answers([("text", data)], "switch")


@pytest.mark.slow
@given(st.lists(mutated(), min_size=1, max_size=3), st.sampled_from(["switch", "rails"]))
@settings(max_examples=5_000, suppress_health_check=[HealthCheck.too_slow])
def test_many_damaged_texts_and_clusters_of_them_never_crash(texts: list[bytes], network: str) -> None:
    answers([("text", data) for data in texts], network)


@pytest.mark.parametrize(
    "text",
    [
        "\t" + "\t".join(f"GPU{gpu}" for gpu in range(100_000)) + "\nGPU0\tX\n",
        "".join(f"GPU{gpu}\n" for gpu in range(50_000)),
        "GPU0 GPU1\n" * 40_000,
        "\tGPU0\tGPU1\nGPU0\t X " + "\n0-7" * 200_000,
        "\tGPU0\nGPU0\t" + "SYS" * 300_000 + "Q\n",
        "Hops between two GPUs\nGPU0\nGPU0 " + "1" * 900_000 + "x\n",
        "<system><cpu>" + "<pci>" * 60 + '<gpu dev="0"/>' * 4000,
        "\n".join(",".join(["1.5"] * 450) for _ in range(450)),
        "\n".join(" ".join(f"{1.2 ** min(row, column):.3g}" for column in range(100)) for row in range(100)),
        "\x1b[" + "0;" * 400_000 + "\n",
        "1" * 900_000,
        "1e5,2\n" * 40_000,
        " " * 999_000 + "x",
        "x" + " " * 999_000 + "x",
        "\n" * 300_000,
        "| " * 499_000 + "x",
        "Bandwidth " * 99_000,
        "1" * 900_000 + "x",
        "MIG " * 240_000,
        "GPU 0: NVIDIA " + "A10 " * 240_000,
        '[1] "S-1"[1] ' * 70_000,
        "CA 1 1 0x1 4x " + "- " * 400_000,
    ],
    ids=lambda text: text[:12].strip() + "…",
)
def test_large_texts_are_answered_soon(text: str) -> None:
    answers([("large", text.encode())], "switch")
