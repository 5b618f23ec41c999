"""What every way to choose tokens must hold to, and what each is known for."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from trainers.errors import GenerationError
from trainers.generation.kernels import attend_runs
from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.cluster_index import ClusterSettings
from trainers.generation.sparse_attention.dense_first import DenseFirst
from trainers.generation.sparse_attention.full import Full
from trainers.generation.sparse_attention.h2o import H2O
from trainers.generation.sparse_attention.method import LayerStore, Method
from trainers.generation.sparse_attention.oracle import OracleTopK, OracleTopP
from trainers.generation.sparse_attention.published import PublishedTactic
from trainers.generation.sparse_attention.quest import Quest
from trainers.generation.sparse_attention.snapkv import AdaKV, PyramidKV, SnapKV
from trainers.generation.sparse_attention.streaming import StreamingLLM
from trainers.generation.sparse_attention.tactic import Tactic

HEADS, GROUP, WIDTH, PROMPT, STEPS, FIRST = 2, 3, 16, 300, 60, 32
BUDGET = 96
SMALL = ClusterSettings(size=16, stretch=32, recent=16)

METHODS: dict[str, Callable[[], Method]] = {
    "full": Full,
    "oracle top-p": lambda: OracleTopP(0.9),
    "oracle top-k": lambda: OracleTopK(BUDGET),
    "quest": lambda: Quest(BUDGET),
    "quest with ends": lambda: Quest(BUDGET, sinks=16, recent=32),
    "snapkv": lambda: SnapKV(BUDGET),
    "pyramidkv": lambda: PyramidKV(BUDGET, layers=6),
    "adakv": lambda: AdaKV(BUDGET),
    "streaming": lambda: StreamingLLM(BUDGET),
    "h2o": lambda: H2O(BUDGET),
    "published tactic": lambda: PublishedTactic(0.9),
    "stratified": lambda: PublishedTactic(0.9, "stratified", clusters=SMALL),
    "oracle order": lambda: PublishedTactic(0.9, "exact", "oracle"),
    "tactic": lambda: Tactic(0.9, SMALL, audit_every=7),
    "tactic after dense layers": lambda: DenseFirst(Tactic(0.9, SMALL)),
}
BUDGETED = {"oracle top-k": 0, "quest": 0, "quest with ends": 0, "streaming": 0, "h2o": 0, "snapkv": STEPS}
"""What they read at most beyond their budget."""


@dataclass
class Decoding:
    """One sequence decoded with a method in one layer: what each step read and what stood where before."""

    method: Method
    seed: int = 0
    prompt: int = PROMPT
    layer: int = 2
    store: LayerStore = field(init=False)
    queries: NDArray[np.float32] = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        slots = FIRST + self.prompt + STEPS + 8
        keys = rng.standard_normal((HEADS, slots, WIDTH), dtype=np.float32)
        values = rng.standard_normal((HEADS, slots, WIDTH), dtype=np.float32)
        values[:, :, 0] = np.arange(slots)  # tells a token wherever it is moved
        keys[:, :, 0] = values[:, :, 0] / slots
        self.queries = 2 * rng.standard_normal((STEPS, HEADS * GROUP, WIDTH), dtype=np.float32)
        self.store = LayerStore(torch.from_numpy(keys), torch.from_numpy(values), FIRST, self.prompt)
        window = torch.from_numpy(rng.standard_normal((HEADS * GROUP, min(self.prompt, 64), WIDTH), dtype=np.float32))
        self.reader = self.method.reader(self.layer, self.store, window)

    def steps(self) -> list[Runs]:
        return [self.step(number) for number in range(STEPS)]

    def step(self, number: int) -> Runs:
        self.store.length += 1
        return self.reader.select(self.queries[number])

    def read(self, runs: Runs, row: int) -> NDArray[np.int64]:
        """Slots that a row reads."""
        mine = range(runs.offsets[row], runs.offsets[row + 1])
        return np.concatenate([np.arange(runs.starts[i], runs.starts[i] + runs.lengths[i]) for i in mine])

    def tokens(self, runs: Runs, row: int) -> NDArray[np.int64]:
        """Numbers of the tokens that a row reads, wherever they lie."""
        return self.store.values[row, self.read(runs, row), 0].numpy().astype(np.int64) - FIRST

    def mass(self, runs: Runs, number: int) -> NDArray[np.float64]:
        """What each head attains (key_value_heads, group)."""
        stored = self.store.keys[:, FIRST : FIRST + self.store.length].double().numpy()
        scores = self.queries[number].reshape(HEADS, GROUP, WIDTH) @ stored.transpose(0, 2, 1) / np.sqrt(WIDTH)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return np.array([weights[row][:, self.read(runs, row) - FIRST].sum(-1) for row in range(HEADS)])


@pytest.mark.parametrize("name", METHODS)
def test_rows_are_disjoint_within_the_sequence_and_have_the_newest_token(name: str) -> None:
    decoding = Decoding(METHODS[name]())
    for number in range(STEPS):
        runs = decoding.step(number)
        assert runs.rows == HEADS
        assert (runs.lengths > 0).all()
        for row in range(HEADS):
            slots = decoding.read(runs, row)
            assert len(set(slots)) == len(slots) == runs.tokens()[row]
            assert slots.min() >= FIRST
            assert slots.max() < FIRST + decoding.store.length
            assert decoding.store.length - 1 in decoding.tokens(runs, row)


@pytest.mark.parametrize("name", METHODS)
def test_the_same_is_read_again(name: str) -> None:
    once, again = Decoding(METHODS[name]()).steps(), Decoding(METHODS[name]()).steps()
    for one, other in zip(once, again, strict=True):
        for part in ("starts", "lengths", "offsets"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))


@pytest.mark.parametrize("name", METHODS)
def test_keys_and_values_stay_together_and_none_is_lost(name: str) -> None:
    decoding = Decoding(METHODS[name]())
    decoding.steps()
    slots = decoding.store.keys.shape[1]
    for row in range(HEADS):
        numbers = decoding.store.values[row, :, 0].numpy()
        np.testing.assert_allclose(decoding.store.keys[row, :, 0].numpy(), numbers / slots, rtol=1e-6)
        assert sorted(numbers) == list(range(slots))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("prompt", [1, 2, 15, 17, 33, 70])
def test_short_prompts_are_read_too(name: str, prompt: int) -> None:
    decoding = Decoding(METHODS[name](), prompt=prompt)
    for runs in decoding.steps():
        assert (runs.tokens() >= 1).all()
    assert runs.tokens().max() <= prompt + STEPS


@pytest.mark.parametrize("name", BUDGETED)
def test_budgets_are_kept(name: str) -> None:
    for runs in Decoding(METHODS[name]()).steps():
        assert runs.tokens().max() <= BUDGET + BUDGETED[name]


def test_quest_reads_whole_pages_besides_the_ends() -> None:
    decoding = Decoding(Quest(BUDGET))
    for runs in decoding.steps():
        assert ((runs.starts - FIRST) % 16 == 0).all()


@pytest.mark.parametrize(("name", "sinks", "recent"), [
    ("quest with ends", 16, 32), ("streaming", 4, BUDGET - 4), ("tactic", 16, 16), ("snapkv", 0, 32), ("h2o", 0, 48),
])  # fmt: skip
def test_sinks_and_recent_tokens_are_read(name: str, sinks: int, recent: int) -> None:
    decoding = Decoding(METHODS[name]())
    for number in range(STEPS):
        runs = decoding.step(number)
        last = decoding.store.length
        for row in range(HEADS):
            assert set(range(sinks)) | set(range(last - recent, last)) <= set(decoding.tokens(runs, row))


def test_adakv_heads_share_a_budget_and_pyramids_fall() -> None:
    ada = Decoding(AdaKV(BUDGET, window=32)).step(0).tokens() - 1
    assert ada.sum() == HEADS * BUDGET
    assert ada.min() >= 32 + int(0.2 * (BUDGET - 32))
    pyramid = [Decoding(PyramidKV(BUDGET, layers=6), layer=layer).step(0).tokens()[0] - 1 for layer in range(6)]
    assert pyramid == sorted(pyramid, reverse=True)
    assert np.mean(pyramid) == pytest.approx(BUDGET, abs=1)
    assert pyramid[-1] - 64 == round((BUDGET - 64) / 20)


def test_oracle_top_p_is_exactly_the_fewest() -> None:
    decoding = Decoding(OracleTopP(0.9), layer=0)
    runs = decoding.step(0)
    assert (decoding.mass(runs, 0) >= 0.9 - 1e-6).all()


def test_dense_layers_read_all() -> None:
    dense = Decoding(DenseFirst(StreamingLLM(8)), layer=1).step(0)
    assert dense.tokens().tolist() == [PROMPT + 1] * HEADS
    assert Decoding(DenseFirst(StreamingLLM(8)), layer=2).step(0).tokens().tolist() == [8] * HEADS


def test_h2o_never_reads_again_what_it_dropped() -> None:
    decoding = Decoding(H2O(BUDGET))
    dropped: list[set[int]] = [set(), set()]
    for number in range(STEPS):
        runs = decoding.step(number)
        for row in range(HEADS):
            read = set(decoding.tokens(runs, row))
            assert not read & dropped[row]
            dropped[row] |= set(range(decoding.store.length)) - read


@pytest.mark.parametrize("target", [0.0, -0.1, 1.001, float("nan")])
@pytest.mark.parametrize("method", [Tactic, OracleTopP])
def test_targets_that_are_no_share_are_refused(method: Callable[[float], Method], target: float) -> None:
    with pytest.raises(GenerationError, match=r"The target mass is .*\(0, 1\]"):
        method(target)


def test_budgets_too_small_are_refused() -> None:
    for make in (lambda: Quest(47), lambda: SnapKV(32), lambda: StreamingLLM(4), lambda: H2O(1), lambda: OracleTopK(0)):
        with pytest.raises(GenerationError, match="reads at least"):
            make()


@pytest.mark.parametrize("name", METHODS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=4)
def test_the_error_of_every_head_is_within_its_bound(name: str, seed: int) -> None:
    """‖output - full output‖ ≤ 2 (1 - mass) max ‖v‖."""
    decoding = Decoding(METHODS[name](), seed=seed)
    decoding.store.values[:, :, 0] = 0
    for number in range(0, STEPS, 20):
        runs = decoding.step(number)
        keys, values, query = decoding.store.keys, decoding.store.values, decoding.queries[number][None]
        full = Runs(np.full(HEADS, FIRST), np.full(HEADS, decoding.store.length), np.arange(HEADS + 1))
        errors = np.linalg.norm(attend_runs(query, keys, values, runs) - attend_runs(query, keys, values, full), axis=2)
        longest = values[:, FIRST : FIRST + decoding.store.length].norm(dim=2).amax(1).numpy()
        bounds = 2 * (1 - decoding.mass(runs, number)) * longest[:, None]
        assert (errors[0] <= bounds.reshape(-1) + 1e-4).all()
