"""From a trainer to the layout that its steps will follow: recorded, measured, agreed on, searched, and tried out.

Rank 0 searches; the others check that what it found fits the step that they have, and all vote. Then the layouts
found, one sum after the backward pass, and DDP take steps in turn, and the fastest is followed: a layout only if it is
faster than both others by more than the trial's noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from statistics import median
from time import perf_counter

import torch.distributed as dist

from trainers.communication import InTurn, Parallel, data_parallel
from trainers.errors import OverlapError
from trainers.overlap.agreement import Notices, Votes
from trainers.overlap.interference import InterferenceTable
from trainers.overlap.list_schedule import as_given, list_schedule
from trainers.overlap.operations import OperationGraph, Resource
from trainers.overlap.plan import OverlapPlan
from trainers.overlap.search import search, serial_plan
from trainers.overlap.training.blocks import Blocks
from trainers.overlap.training.decision import Decision
from trainers.overlap.training.graph import step_graph
from trainers.overlap.training.layout import BucketLayout, Layout, serial
from trainers.overlap.training.measuring import Subject, measured
from trainers.overlap.training.profile import StepProfile, slowest
from trainers.overlap.training.recording import Recording, trainable
from trainers.overlap.training.timelines import predicted_rows, traced_rows
from trainers.sharding import shards

SECONDS = 1.5  # of search for each layout that is tried out
STEPS = 3  # of each way in a round of the trial
LEFT_OUT = (2, 3, 4, 5)  # each so-many-th bucket, in simple launch orders
FEWEST, MOST, TRIAL_SECONDS = 2, 9, 20.0  # rounds: as many as fit into so many seconds
CLEARLY = 0.03  # share of a step that a layout must save
SIMPLE = ("serial", "ddp")
Buckets = tuple[BucketLayout, ...]
_numbers = count()  # of the plannings of this process; all ranks are at the same one


def planned(subject: Subject, record: Callable[[], Recording]) -> Decision:
    """Find the layout. Called on all ranks. OverlapError on every rank, with the reason, where one of them fails."""
    notices = Notices()
    try:
        return _Planning(subject, Votes(f"plan {next(_numbers)}", notices)).decision(record())
    except Exception as error:
        reason = notices.heard()
        notices.post(f"{type(error).__name__}: {error}")
        if reason is None or isinstance(error, OverlapError):
            raise
        raise OverlapError(f"The search for a pipeline has failed on {reason}") from error


@dataclass(frozen=True)
class _Found:
    """A layout, and its plan."""

    layout: Layout
    plan: OverlapPlan


class _Planning:
    def __init__(self, subject: Subject, votes: Votes) -> None:
        self._subject, self._votes = subject, votes

    def decision(self, recording: Recording) -> Decision:
        sharded = shards(self._subject.model)
        parameters = trainable(self._subject.model)
        sizes = {name: 0 if name in sharded else each.nbytes for name, each in parameters.items()}
        self._votes.agree("model", [recording.ready, recording.calls, list(recording.places.items()), sizes])
        blocks = Blocks(recording, sizes)
        profile = self._profile(recording, blocks, sizes)
        found = self._finalists(profile, blocks)
        seconds = self._trial(found, blocks)
        chosen = fastest({way: median(samples) for way, samples in seconds.items()})
        return self._decided(profile, found, chosen, seconds, blocks)

    def _profile(self, recording: Recording, blocks: Blocks, sizes: dict[str, int]) -> StepProfile:
        """The slowest rank's, operation by operation."""
        own = measured(self._subject, recording, blocks, sizes)
        said = self._votes.statements(own.to_json())
        return slowest([StepProfile.from_json(each) for each in said])

    def _finalists(self, profile: StepProfile, blocks: Blocks) -> dict[str, _Found]:
        """What rank 0 has found, checked by all."""
        own = self._searched(profile, blocks) if dist.get_rank() == 0 else {}
        stated = {way: [each.layout.to_json(), each.plan.to_json()] for way, each in own.items()}
        said, *_ = self._votes.statements(stated)
        found = {name: _Found(Layout.from_json(way), OverlapPlan.from_json(plan)) for name, (way, plan) in said.items()}
        for each in found.values():
            each.plan.check(self._graph(each.layout.buckets, each.layout.order, profile)[0], profile.machine)
        self._votes.agree("plan of overlapping", said)
        return found

    def _searched(self, profile: StepProfile, blocks: Blocks) -> dict[str, _Found]:
        """Of each kind of ways to put blocks into buckets the most promising, with its best launch order."""
        table = _interference(profile)
        found = {}
        for kind, candidates in blocks.candidates().items():
            simple = {
                buckets: min((self._period(buckets, order, profile), order) for order in simple_orders(len(buckets)))
                for buckets in candidates
            }
            buckets = min(simple, key=lambda each: simple[each])
            free = search(*self._graph(buckets, None, profile), table, seconds=SECONDS)
            _, order = min(simple[buckets], (self._period(buckets, order_of(free), profile), order_of(free)))
            plan = search(*self._graph(buckets, order, profile), table, machine=profile.machine, seconds=SECONDS)
            if plan.mode == "overlapped":
                layout = Layout("overlapped", buckets, order, self._subject.threads)
                found[f"{len(buckets)} {kind} buckets"] = _Found(layout, plan)
        return found

    def _period(self, buckets: Buckets, order: tuple[int, ...], profile: StepProfile) -> float:
        """Of a step, without interference."""
        graph, times = self._graph(buckets, order, profile)
        return list_schedule(graph, times, as_given, periodic=True).period

    def _graph(
        self, buckets: Buckets, order: tuple[int, ...] | None, profile: StepProfile
    ) -> tuple[OperationGraph, dict[str, float]]:
        return step_graph(buckets, profile, self._subject.by_part, order)

    def _trial(self, found: dict[str, _Found], blocks: Blocks) -> dict[str, list[float]]:
        """Seconds of a step each way, in turn, of the slowest rank."""
        ways: dict[str, Layout | None] = {"serial": serial(blocks.all), "ddp": None}
        ways |= {name: each.layout for name, each in found.items()}
        distributed = InTurn(data_parallel(self._subject.model))
        for layout in ways.values():  # DDP regroups its gradients after its first step, others touch new memory
            self._seconds_a_step(self._subject.pipeline(layout) if layout else distributed, 1)
        rounds: list[dict[str, float]] = []
        while len(rounds) < FEWEST or len(rounds) < min(MOST, TRIAL_SECONDS / (STEPS * sum(rounds[0].values()))):
            own = {
                name: self._seconds_a_step(self._subject.pipeline(layout) if layout else distributed)
                for name, layout in ways.items()
            }
            said = self._votes.statements(own)
            rounds.append({name: max(rank[name] for rank in said) for name in ways})
        return {name: [each[name] for each in rounds] for name in ways}

    def _seconds_a_step(self, way: Parallel, steps: int = STEPS) -> float:
        dist.barrier()
        begun = perf_counter()
        self._subject.steps(way, steps)
        seconds = (perf_counter() - begun) / steps
        way.close()
        return seconds

    def _decided(
        self,
        profile: StepProfile,
        found: dict[str, _Found],
        chosen: str,
        seconds: dict[str, list[float]],
        blocks: Blocks,
    ) -> Decision:
        alone = serial(blocks.all)
        serially = serial_plan(*self._graph(alone.buckets, alone.order, profile), profile.machine)
        timelines = {
            "predicted, in turn": predicted_rows(serially),
            "measured, in turn": traced_rows(self._subject, alone, profile),
        }
        if found:
            best = found[min(found, key=lambda way: median(seconds[way]))]
            timelines["predicted, overlapped"] = predicted_rows(best.plan)
            timelines["measured, overlapped"] = traced_rows(self._subject, best.layout, profile)
        layouts = {"serial": alone, "ddp": Layout("ddp", (), ()), **{way: each.layout for way, each in found.items()}}
        predicted = {
            "serial": serially.period_seconds,
            **{way: each.plan.period_seconds for way, each in found.items()},
        }
        return Decision(
            layout=layouts[chosen],
            machine=profile.machine,
            seconds=seconds,
            chosen=chosen,
            predicted_seconds=predicted.get(chosen),
            predicted_serial_seconds=serially.period_seconds,
            timelines=timelines,
            rejected=profile.rejected,
        )


def fastest(seconds: dict[str, float]) -> str:
    """The way to follow, by seconds of a step: the better simple one, unless another is clearly faster."""
    simple = min(SIMPLE, key=lambda way: seconds[way])
    best = min(seconds, key=lambda way: seconds[way])
    return best if seconds[best] < (1 - CLEARLY) * seconds[simple] else simple


def simple_orders(count: int) -> Iterator[tuple[int, ...]]:
    """Some buckets as they are complete, the others afterwards, the other way round: as the next step needs them.

    The others are all from some place on, or each so-many-th from the beginning: of the layers that are needed last.
    """
    for turn in range(count):
        yield (*range(turn), *reversed(range(turn, count)))
    for every in LEFT_OUT:
        later = range(every - 1, count, every)
        yield (*(number for number in range(count) if number not in later), *reversed(later))


def order_of(plan: OverlapPlan) -> tuple[int, ...]:
    """In which a plan sends the buckets."""
    return tuple(int(name.split()[1]) for name in plan.streams[Resource.NETWORK])


def _interference(profile: StepProfile) -> InterferenceTable:
    """Straight lines from nothing over what was measured to the speed alone."""
    ends = (0.0, 0.0), (1.0, 1.0)
    curves = {Resource(name): (ends[0], pair, ends[1]) for name, pair in profile.speeds.items()}
    return InterferenceTable({Resource.COMPUTE: ends, **curves})
