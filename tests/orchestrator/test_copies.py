"""Trials on several copies of a job: equal outcomes, states sent no more than needed, and one error that ends all."""

import math
from dataclasses import fields, replace
from threading import Event as Flag
from threading import current_thread, main_thread

import pytest

from orchestrator.events import ArmTakenUp, ProbeRan
from orchestrator.execution import Execution
from orchestrator.learning_rate import make_policy
from orchestrator.learning_rate.turns import steps_in_turn
from orchestrator.trial import START

STEPS = 1600
SEARCH = {"name": "autolrs"}
MORE = {"name": "autolrs", "also": ["weight_decay", "batch_size"]}
STAGES = {"name": "autolrs_paper", "probes": 4, "stages": 2, "max_lr": 0.1}


class Descent:
    """A job: noisy descent on a parabola. Its state is where it stands and how many steps it has taken."""

    def __init__(self):
        self.state, self.store = (3.0, 0), {}
        self.sent, self.threads, self.trained, self.most = [], set(), 0, 0
        self.closed = Flag()

    def train(self, rates, settings, *, more=False):
        self.threads.add(current_thread())
        return [self._step(rate, settings) for rate in rates]

    def _step(self, rate, settings):
        place, step = self.state
        noise = math.sin(7 * step) / settings.get("batch_size", 1)
        decay = 0.01 * settings.get("weight_decay", 1)
        self.state = (place - rate * ((2 + decay) * place + noise), step + 1)
        self.trained += 1
        return place * place + 0.1 * noise + 1

    def validate(self, split):
        return {"loss": self.state[0] ** 2 + 1}

    def evaluate(self):
        return {}, []

    def measurements(self):
        return {}

    def keep(self, name):
        self.take(name, self.state)

    def rewind(self, name):
        self.state = self.store[name]

    def forget(self, name):
        del self.store[name]

    def kept(self, name):
        self.sent.append(name)
        return self.store[name]

    def take(self, name, state):
        self.store[name] = state
        self.most = max(self.most, len(self.store))

    def close(self):
        self.closed.set()


def carried_through(job, replicas=(), remembered=(), lr=SEARCH):
    """All that was tried and taken up, without the seconds it took."""
    policy = make_policy(lr, STEPS)
    events = []
    execution = Execution(job, events.append, replicas=replicas)
    execution.remember(remembered)
    while (action := policy.ask()) is not None:
        policy.tell(execution.carry_out(action))
    return [timeless(event) for event in events if isinstance(event, ProbeRan | ArmTakenUp)]


def timeless(event):
    seconds = [field.name for field in fields(event) if field.name.endswith("seconds")]
    return replace(event, **dict.fromkeys(seconds, 0.0))


@pytest.mark.parametrize(
    ("lr", "count"),
    [
        (SEARCH, 1),
        (SEARCH, 2),
        (SEARCH, 4),
        (SEARCH, 20),
        (MORE, 3),
        pytest.param(STAGES, 2, marks=pytest.mark.slow),
    ],
)
def test_replicas_change_nothing_but_the_time(lr, count):
    alone, together = Descent(), Descent()
    replicas = [Descent() for _ in range(count)]
    assert carried_through(together, replicas, lr=lr) == carried_through(alone, lr=lr)
    assert together.state == alone.state
    assert together.trained + sum(each.trained for each in replicas) == alone.trained
    assert all(each.trained for each in replicas[:3])


@pytest.fixture(scope="module", params=[SEARCH, MORE], ids=["the rate", "more than the rate"])
def alone(request):
    job = Descent()
    return request.param, carried_through(job, lr=request.param), job.state


@pytest.mark.parametrize("count", [0, 1, 2, 4])
@pytest.mark.parametrize(
    "done", [pytest.param(done, marks=[pytest.mark.slow] * (done not in (7, 12))) for done in range(18)]
)
def test_a_search_that_was_killed_anywhere_ends_equally(alone, count, done):
    """Ends that nobody keeps are run again wherever they are needed."""
    (lr, events, state), later = alone, Descent()
    probes = [event for event in events if isinstance(event, ProbeRan)]
    again = carried_through(later, [Descent() for _ in range(count)], probes[:done], lr)
    assert again == events[min(done, len(probes)) :]
    assert later.state == state


def test_the_start_is_sent_once_and_an_end_only_to_who_goes_on_from_it():
    job, replicas = Descent(), [Descent() for _ in range(3)]
    carried_through(job, replicas)
    sent = [name for copy in (job, *replicas) for name in copy.sent]
    assert sent.count(START) == 1
    assert len(sent) <= 3  # at most one of the two leaders moves, and the winner comes home
    assert max(copy.most for copy in replicas) <= 3
    assert [copy.store for copy in (job, *replicas)] == [{}] * 4


@pytest.mark.parametrize("faulty", [0, 1, 2])
def test_an_error_in_one_copy_ends_all(faulty):
    copies = [Descent() for _ in range(3)]
    for copy in copies:
        copy.train = lambda rates, settings, own=copy: own.closed.wait(60) and [math.nan] * len(rates)

    def fail(rates, settings):
        raise ValueError("the batch is cursed")

    copies[faulty].train = fail
    with pytest.raises(ValueError, match="the batch is cursed"):
        carried_through(copies[0], copies[1:])
    assert all(copy.closed.is_set() for copy in copies)


def test_alone_all_happens_in_the_callers_thread():
    """Where signals arrive."""
    job = Descent()
    carried_through(job)
    assert job.threads == {main_thread()}


@pytest.mark.parametrize(("copies", "steps"), [(1, 1800), (2, 1680), (3, 1680), (4, 1640), (5, 1640)])
def test_the_time_that_replicas_save(copies, steps):
    """1.125, 1.05 and 1.025 times 1600."""
    assert steps_in_turn(make_policy(SEARCH, 1600), copies) == steps


def test_probes_that_are_asked_for_at_once_take_one_turn():
    one, four = (steps_in_turn(make_policy(STAGES, 1000), copies) for copies in (1, 4))
    assert one - four == 2 * 3 * 50
