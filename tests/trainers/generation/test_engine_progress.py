"""What people are shown while it runs, and what continuous batches gain."""

import pytest
import torch

from trainers.generation.engine import Engine
from trainers.generation.progress import Progress
from trainers.generation.requests import Completion, Produced, Request
from trainers.generation.throughput import throughput
from trainers.models.transformer import Transformer

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_line_says_how_far_it_is_and_how_long_it_may_take():
    time = 0.0
    progress = Progress([Request((1,), 10), Request((1,), 20)], clock=lambda: time)
    assert progress.line() == "0 of 2 prompts complete, 0 tokens"
    for _ in range(5):
        progress(Produced(1, 0, None))
    progress(Produced(0, 0, Completion([0], b"", "stop_token")))
    time = 2.0
    assert progress.line() == "1 of 2 prompts complete, 6 tokens, 3 tokens/s, at most 5 s left"


def test_progress_sees_every_token():
    torch.manual_seed(0)
    requests = [Request((1, 2), 7), Request((3,), 4)]
    progress = Progress(requests)
    Engine(Transformer(16, width=16, layers=1, heads=2, key_value_heads=1), 32).generate(requests, progress)
    assert progress.line().startswith("2 of 2 prompts complete, 11 tokens, ")
    assert progress.line().endswith(" tokens/s, at most 0 s left")


def test_batches_serve_the_same_tokens_faster():
    """Twice as fast is asked for; a busy machine gets away with a fifth more."""
    torch.manual_seed(0)
    model = Transformer(256, width=192, layers=2)
    result = throughput(model, 64, [Request((number,) * 8, 12) for number in range(16)], rounds=2)
    assert result.agreeing >= 0.9
    assert len(result.batched) == len(result.one_at_a_time) == 2
    assert result.speedup > 1.2
