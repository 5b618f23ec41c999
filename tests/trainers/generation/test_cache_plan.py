"""The memory of a cache is stated and refused from sizes alone."""

import subprocess
import sys

import pytest

from trainers.errors import DataError, GenerationError
from trainers.generation.cache_plan import CachePlan, available_memory, readable

SMOLLM2 = {"layers": 30, "key_value_heads": 3, "head_width": 64}


def test_a_plan_says_what_it_takes():
    plan = CachePlan(**SMOLLM2, sequences=32, context=8192)
    assert plan.token_bytes == 46_080
    assert plan.bytes == 32 * 8192 * 46_080
    assert plan.statement() == "KV cache: 32 sequences × 8192 tokens × 46.1 kB = 12.1 GB"


def test_a_limit_is_kept_in_whole_pages_and_stated():
    plan = CachePlan(**SMOLLM2, sequences=32, context=8192, limit=10**9)
    assert plan.bytes <= 10**9 < plan.bytes + 16 * plan.token_bytes
    assert plan.tokens % 16 == 0
    assert plan.statement().endswith("= 12.1 GB, of which 1 GB at a time; the rest queues")


def test_no_more_is_taken_than_the_sequences_can_fill():
    assert CachePlan(**SMOLLM2, sequences=2, context=100, limit=10**12).tokens == 2 * 112


def test_a_cache_above_the_memory_there_is_refused_in_one_sentence():
    with pytest.raises(
        GenerationError,
        match=r"^KV cache: 32 sequences × 8192 tokens × 46.1 kB = 12.1 GB, but only 4 GB of memory are free; lower",
    ):
        CachePlan(**SMOLLM2, sequences=32, context=8192).check(4 * 10**9)


def test_a_limit_that_holds_no_page_is_refused():
    with pytest.raises(DataError, match="limit of the KV cache is 100 kB; 16 tokens alone take 737 kB: raise it"):
        CachePlan(**SMOLLM2, sequences=1, context=64, limit=10**5).check(10**9)


@pytest.mark.parametrize("sizes", [{"sequences": 0, "context": 64}, {"sequences": 2, "context": 0}])
def test_a_cache_for_nothing_is_refused(sizes):
    with pytest.raises(GenerationError, match="are asked for; both must be at least 1"):
        CachePlan(**SMOLLM2, **sizes).check(10**9)


def test_the_memory_of_this_machine_is_found():
    assert 10**8 < available_memory() < 10**14


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 bytes"), (999, "999 bytes"), (46_080, "46.1 kB"), (2 * 10**9, "2 GB")]
)
def test_sizes_read_well(size, words):
    assert readable(size) == words


def test_a_plan_needs_no_torch():
    code = "import sys, trainers.generation.cache_plan; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
