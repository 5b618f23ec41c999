"""Methods side by side on a small model with random weights."""

import pytest
import torch

from trainers.generation.evaluation.comparison import Comparison, rivals
from trainers.generation.evaluation.prefilled import prefill
from trainers.generation.sparse_attention.cluster_index import ClusterSettings
from trainers.generation.sparse_attention.oracle import OracleTopP
from trainers.generation.sparse_attention.tactic import Tactic
from trainers.models.transformer import Transformer


@pytest.mark.slow
def test_rows_say_what_was_read_and_how_predictions_changed() -> None:
    torch.manual_seed(0)
    model = Transformer(vocabulary=50, width=32, layers=4, heads=4, key_value_heads=2).eval()
    tokens = torch.randint(0, 50, (330,)).tolist()
    prompt = prefill(model, tokens[:300])
    methods = {
        "oracle": OracleTopP(0.8),
        "tactic": Tactic(0.8, ClusterSettings(size=8, sinks=4, recent=8), dense_share=1),
        "all": Tactic(1.0),
        **rivals(96, layers=4),
    }
    comparison = Comparison(model, prompt, tokens[300:])
    rows = {"full": comparison.full} | {name: comparison.row(name, method) for name, method in methods.items()}
    with torch.no_grad():
        plainly = model(torch.tensor([tokens]))[0, 300:-1].log_softmax(-1)
    told = plainly.gather(1, torch.tensor(tokens[301:])[:, None])
    for same in ("full", "all"):
        assert rows[same].perplexity == pytest.approx(float((-told.mean()).exp()), rel=1e-4)
        assert rows[same].kl == pytest.approx(0, abs=1e-5)
        assert rows[same].mass_p5 == pytest.approx(1, abs=1e-5)
        assert rows[same].read == 300 + 15
    assert rows["oracle"].mass_p5 >= 0.8 - 1e-6
    assert rows["tactic"].mass_mean >= 0.8
    needed, oracle = rows["tactic"].needed, rows["oracle"].needed
    assert needed is not None and oracle is not None  # noqa: PT018
    assert oracle <= needed <= rows["tactic"].read < 315
    assert 80 <= rows["Quest"].read <= 96  # the newest page is not always full
    assert rows["SnapKV"].read == 96 + 15
    assert rows["SnapKV"].needed is None
    assert all(row.kl > 0 and row.seconds > 0 for row in rows.values() if row.name not in ("full", "all"))
