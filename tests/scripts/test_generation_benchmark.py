"""The generation benchmark's parts: dense ways that agree, a summary worked out by hand, figures of its rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmark_parts.generation.accuracy import TARGETS
from benchmark_parts.generation.kernels import DENSE
from benchmark_parts.generation.one_layer import SHARES, note_of, one_layer_rows
from benchmark_parts.generation.rows import row
from benchmark_parts.generation.summary import summarise
from generation_figures import main as figures

from trainers.generation.runs import Runs

KEYS = {
    "attained_mass_mean", "attained_mass_p5", "kept_over_oracle", "kl_over_quest", "kl_over_snapkv",
    "decode_speedup_32k_10", "decode_speedup_32k_30", "end_to_end_speedup_8k", "end_to_end_speedup_32k",
    "clustering_share_of_prefill", "engine_over_one_at_a_time",
}  # fmt: skip


def test_dense_ways_agree() -> None:
    random = np.random.default_rng(0)
    keys, values = (torch.from_numpy(random.standard_normal((2, 70, 16), np.float32)) for _ in range(2))
    queries = random.standard_normal((1, 6, 16), np.float32)
    runs = Runs(np.zeros(2, np.int64), np.full(2, 67), np.arange(3))
    found = [kernel(queries, keys, values, runs) for kernel in DENSE.values()]
    for each in found[1:]:
        np.testing.assert_allclose(each, found[0], atol=1e-5)


@pytest.mark.slow
def test_tactic_reads_the_share_that_is_asked_for() -> None:
    rows = [each for each in one_layer_rows(4096, steps=16) if each["method"] == "Tactic"]
    for each, share in zip(rows, SHARES, strict=True):
        assert each["read"] == pytest.approx(share * 4096, rel=0.5)


def compared(part: str, text: str, factor: float) -> list[dict]:
    """Tactic needs thrice the oracle's tokens, and has a tenth of Quest's divergence."""
    values = {"part": part, "text": text, "context": 1000, "steps": 4, "perplexity": 5.0, "top1_agreement": 1.0}
    made = []
    for target in TARGETS:
        for name, needed, kl in (("Tactic", 30.0, 0.1), ("oracle top-p", 10.0, 0.01), ("Quest", 30.0, 1.0)):
            masses = {"mass_mean": target + 0.02, "mass_p5": target - 0.01 * factor, "kl": kl * factor}
            more = {
                "read": 2 * needed * target,
                "needed": needed,
                "milliseconds": [1.0],
                "target": target,
                "method": name,
            }
            made.append(row(**values, **masses, **more))
        for name in ("SnapKV", "Quest + sinks and recent"):
            made.append(row(**{**made[-1], "method": name, "kl": 2 * factor}))
    return made


def timed(part: str, context: int, milliseconds: dict[str, float], note: str = "") -> list[dict]:
    return [
        row(part=part, context=context, method=name, note=note, milliseconds=[each] * 3, read=1.0)
        for name, each in milliseconds.items()
    ]


@pytest.fixture
def rows() -> list[dict]:
    """Of the dense ways the last is the fastest and takes 6 ms at 4k."""
    found = [*compared("accuracy", "a", 1), *compared("accuracy", "b", 2), *compared("curve", "a", 1)]
    dense = dict(zip(DENSE, (9.0, 8.0, 6.0), strict=True))
    for context in (2048, 4096):
        for share in SHARES:
            times = {**dense, "Tactic": 10 * share * context / 4096}
            found += timed("one layer", context, times, note_of(share))
        found += timed("end to end", context, {**dense, "Tactic": 3.0 if context == 2048 else 1.0})
    found += timed("prompt", 2048, {"storing": 100.0, "clustering": 4.0})
    found += timed("prompt", 4096, {"storing": 100.0, "clustering": 9.0})
    speeds = {"batch of 16": [8.0, 9.0, 3.0], "one at a time": [4.0, 3.0, 3.0]}
    return [*found, *(row(part="engine", method=name, tokens_per_second=each) for name, each in speeds.items())]


def test_the_summary_is_worked_out_from_the_rows(rows: list[dict]) -> None:
    summary = summarise(rows)
    assert summary.keys() >= KEYS
    assert summary["attained_mass_mean"] == pytest.approx({"0.8": 0.82, "0.9": 0.92, "0.95": 0.97})
    assert summary["attained_mass_p5"] == pytest.approx({"0.8": 0.78, "0.9": 0.88, "0.95": 0.93})
    assert summary["kept_over_oracle"] == pytest.approx(3)
    assert summary["kl_over_quest"] == pytest.approx(0.1)
    assert summary["kl_over_snapkv"] == pytest.approx(0.05)
    assert (summary["decode_speedup_32k_10"], summary["decode_speedup_32k_30"]) == (6, 2)
    assert (summary["end_to_end_speedup_8k"], summary["end_to_end_speedup_32k"]) == (2, 6)
    assert summary["clustering_share_of_prefill"] == pytest.approx(0.04)
    assert summary["engine_over_one_at_a_time"] == 2


def test_the_figures_are_drawn(rows: list[dict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.json").write_text(json.dumps({"rows": rows}))
    monkeypatch.setattr("sys.argv", ["generation_figures.py", str(tmp_path / "rows.json"), str(tmp_path)])
    figures()
    for name in ("attention-mass.png", "attention-time.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
