"""Turns of a conversation go on from what earlier ones stored, to the bit; what does not fit is computed again."""

from pathlib import Path

import pytest
import torch

from trainers.errors import GenerationError
from trainers.generation.cache_plan import PAGE, CachePlan
from trainers.generation.engine import Engine
from trainers.generation.formation import worker_for
from trainers.generation.kv_cache import KVCache
from trainers.generation.pages import Stretch
from trainers.generation.requests import Request
from trainers.generation.sequence import Sequence
from trainers.generation.sparse_attention.streaming import StreamingLLM
from trainers.generation.tiers.keeping import Keeping
from trainers.generation.tiers.tiers import Tiers
from trainers.models.transformer import Transformer

pytestmark = pytest.mark.usefixtures("one_thread")
CONTEXT = 200
TOKEN_BYTES = 2 * 2 * 2 * 8 * 4  # keys and values of 2 layers, 2 heads of width 8, in float32
FORMATIONS = ["asynchronous", "synchronous"]


def sharp_transformer() -> Transformer:
    """Its likeliest tokens stand out, so that rounding doesn't change them."""
    torch.manual_seed(5)
    model = Transformer(64, width=32, layers=2, heads=4, key_value_heads=2)
    for parameter in model.parameters():
        parameter.data *= 6 if parameter.dim() == 2 else 1
    return model.eval()


MODEL = sharp_transformer()
FIRST = Request(tuple(range(40)), 20, conversation="a talk")


def turn(engine: Engine, request: Request, said: tuple[int, ...]) -> tuple[Request, int]:
    """The next request after one, and how many tokens of it are known by then."""
    (completion,) = engine.generate([request])
    tokens = (*request.prompt, *completion.tokens)
    return Request((*tokens, *said), 20, conversation=request.conversation), len(tokens)


@pytest.mark.parametrize("formation", FORMATIONS)
def test_a_turn_goes_on_from_the_one_before(formation):
    plain = Engine(MODEL, CONTEXT)
    engine = Engine(MODEL, CONTEXT, tiers=Tiers(10**7), formation=formation)
    request, before = FIRST, 1
    for said in ((5, 6, 7), (9,), (1, 2)):
        (expected,) = plain.generate([Request(request.prompt, 20)])
        computed = engine.counts.tokens
        request, known = turn(engine, request, said)
        assert list(request.prompt[known - 20 : known]) == expected.tokens
        assert engine.counts.tokens - computed == known - before
        before = known
    assert engine.generate([request])[0].restored == before - 1  # the token produced last was never stored


@pytest.mark.parametrize("formation", FORMATIONS)
def test_turns_in_one_call_follow_one_another(formation):
    engine = Engine(MODEL, CONTEXT, batch=1, tiers=Tiers(10**7), formation=formation)
    first, second, other = engine.generate([FIRST, FIRST, Request(FIRST.prompt, 20, conversation="another")])
    assert (first.restored, second.restored, other.restored) == (0, len(FIRST.prompt) - 1, 0)
    assert first.tokens == second.tokens == other.tokens


def test_what_a_stop_token_ended_is_gone_on_from():
    engine = Engine(MODEL, CONTEXT, tiers=Tiers(10**7))
    tokens = Engine(MODEL, CONTEXT).generate([Request(FIRST.prompt, 20)])[0].tokens
    stopped = Request(FIRST.prompt, 20, stop_tokens=frozenset({tokens[9]}), conversation="a talk")
    request, known = turn(engine, stopped, (3,))
    (again,) = engine.generate([request])
    assert again.restored in (known - 1, known)
    assert again.tokens == Engine(MODEL, CONTEXT).generate([Request(request.prompt, 20)])[0].tokens


def test_what_was_changed_is_computed_from_there():
    engine = Engine(MODEL, CONTEXT, tiers=Tiers(10**7))
    engine.generate([FIRST])
    changed = Request((*FIRST.prompt[:25], 63, *FIRST.prompt[26:]), 20, conversation="a talk")
    (completion,) = engine.generate([changed])
    assert completion.restored == 25
    assert completion.tokens == Engine(MODEL, CONTEXT).generate([Request(changed.prompt, 20)])[0].tokens
    other = Request((63, *FIRST.prompt[1:]), 20, conversation="a talk")
    assert engine.generate([other])[0].restored == 0


def test_other_weights_never_go_on_from_these():
    tiers, model = Tiers(10**7), sharp_transformer()
    engine = Engine(model, CONTEXT, tiers=tiers)
    engine.generate([FIRST])
    with torch.no_grad():
        model.blocks[0].attention.keys.weight += 0.01
    assert engine.generate([FIRST])[0].restored == 0
    assert engine.generate([FIRST])[0].restored == len(FIRST.prompt) - 1


def test_another_process_goes_on_from_the_disk_and_damage_costs_one_warning(tmp_path: Path):
    with Tiers(0, tmp_path, 10**7) as tiers:
        first = Engine(MODEL, CONTEXT, tiers=tiers).generate([FIRST])[0]
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    later = Engine(MODEL, CONTEXT, tiers=Tiers(10**7, tmp_path, 10**7)).generate([FIRST])[0]
    assert (later.tokens, later.restored) == (first.tokens, len(FIRST.prompt) - 1)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.warns(UserWarning, match="is damaged") as warned:
        damaged = Engine(MODEL, CONTEXT, tiers=Tiers(10**7, tmp_path, 10**7)).generate([FIRST])[0]
    assert len(warned) == 1
    assert (damaged.tokens, damaged.restored) == (first.tokens, 0)


@pytest.mark.parametrize("formation", FORMATIONS)
@pytest.mark.parametrize("host_tokens", [0, 10_000])
def test_who_is_preempted_goes_on_where_it_was_if_a_tier_has_kept_it(formation, host_tokens, tmp_path):
    """The first ends early, so that the others are expected to; they don't, and don't fit together."""
    short = Request((7,) * 30, 2)
    requests = [short, *(Request(tuple(range(number, number + 30)), 60) for number in range(3))]
    crowded = {"batch": 3, "cache_bytes": 9 * PAGE * TOKEN_BYTES, "formation": formation}
    expected = Engine(MODEL, CONTEXT).generate(requests)
    forgetting = Engine(MODEL, CONTEXT, **crowded)
    assert forgetting.generate(requests) == expected
    assert forgetting.counts.preempted
    keeping = Engine(MODEL, CONTEXT, tiers=Tiers(host_tokens * TOKEN_BYTES, tmp_path, 10**7), **crowded)
    assert keeping.generate(requests) == expected
    assert keeping.counts.preempted
    assert keeping.counts.tokens == 32 - 1 + 3 * (90 - 1) < forgetting.counts.tokens
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("formation", FORMATIONS)
def test_keys_and_values_come_back_to_the_bit_wherever_there_is_room(formation):
    cache = KVCache(CachePlan(2, 3, 4, sequences=1, context=12 * PAGE), torch.device("cpu"))
    cache.keys.normal_()
    cache.values.normal_()
    worker = worker_for(formation)
    keeping = Keeping(cache, Tiers(10**7), worker, "weights")
    sequence = Sequence(0, Request((1,) * 60, 5), cache, 100)
    assert sequence.table.grow(60)
    sequence.store(58)
    before = cache.gather(sequence.table.places(0, 58))
    keeping.preempted(sequence)
    sequence.preempt()
    cache.pages.take(cache.pages.count)
    cache.pages.give_back([Stretch(1, 2), Stretch(6, 1), Stretch(9, 2)])
    worker.submit(cache.keys.fill_, 0).result()  # the room is somebody else's meanwhile
    worker.submit(cache.values.fill_, 0).result()
    assert sequence.table.grow(60)
    assert len(sequence.table.places(0, 60)) > 1
    keeping.admitted(sequence)
    keeping.end()
    assert sequence.stored == 58
    after = cache.gather(sequence.table.places(0, 58))
    assert all(torch.equal(*pair) for pair in zip(before, after, strict=True))


def test_an_engine_without_tiers_refuses_conversations_and_one_with_a_sparse_method_tiers():
    with pytest.raises(ValueError, match="Conversations need an engine that is given tiers"):
        Engine(MODEL, CONTEXT).generate([FIRST])
    with pytest.raises(GenerationError, match="give the engine a method or tiers"):
        Engine(MODEL, CONTEXT, method=StreamingLLM(32), tiers=Tiers(1))
