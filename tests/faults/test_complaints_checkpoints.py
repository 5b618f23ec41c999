"""What people report of checkpoints elsewhere: lost, half written, stale, or taken up with another rate or data."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from orchestrator.cluster.snapshots import MANIFEST, NoSpaceError, SnapshotStore, require_space
from orchestrator.learning_rate.schedules import Cosine, OneCycle, schedule_from_json, schedule_json
from trainers import Splits, Task, Trainer, TrainerOptions
from trainers.data.order import DataOrder


class Line(Task):
    """A line through points."""

    def build_model(self) -> nn.Module:
        return nn.Linear(3, 1)

    def build_data(self) -> Splits:
        x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
        return Splits(*(TensorDataset(x[part::3], x[part::3].sum(1, keepdim=True)) for part in range(3)))

    def loss(self, model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        return nn.functional.mse_loss(model(batch[0]), batch[1])


def trainer() -> Trainer:
    return Trainer(Line(), lambda parameters: torch.optim.SGD(parameters, lr=9.0, momentum=0.9), TrainerOptions(5))


def saved(store: SnapshotStore, step: int) -> Path:
    def write(folder: Path) -> dict[str, int]:
        (folder / "rank0").write_bytes(bytes(1000) + step.to_bytes(4, "big"))
        return {"step": step}

    return store.save(step, write).path


def test_a_restored_optimizer_does_not_bring_its_old_rate_back_ray_62173() -> None:
    subject = trainer()
    subject.train([0.25])
    before = subject.snapshot()
    subject.train([0.001])
    subject.restore(before)
    subject.train([0.0625])
    assert subject.rates() == [0.0625]


def test_nothing_is_taken_up_from_a_missing_checkpoint_ray_53831(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    (saved(store, 100) / "rank0").unlink()
    found, skipped = store.newest()
    assert found is None
    assert "rank0 is missing" in skipped[0]


def test_nothing_is_taken_up_from_a_stale_checkpoint_ray_27170(tmp_path: Path) -> None:
    """Files of an older step under the newer one's name."""
    store = SnapshotStore(tmp_path)
    older, newer = saved(store, 100), saved(store, 200)
    (newer / "rank0").write_bytes((older / "rank0").read_bytes())
    found, skipped = store.newest()
    assert found is not None
    assert found.step == 100
    assert "has changed since it was written" in skipped[0]


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("name", ["rank0", MANIFEST])
@pytest.mark.parametrize("damage", [truncate, empty, flip])
def test_a_half_written_checkpoint_costs_no_more_than_itself_ray_58179(
    damage: Callable[[Path], None], name: str, tmp_path: Path
) -> None:
    store = SnapshotStore(tmp_path)
    saved(store, 100)
    damage(saved(store, 200) / name)
    found, skipped = store.newest()
    assert found is not None
    assert (found.step, len(skipped)) == (100, 1)


def test_a_full_disk_leaves_the_last_good_checkpoint_ultralytics_5793(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    saved(store, 100)

    def fill(folder: Path) -> dict[str, int]:
        (folder / "rank0").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        store.save(200, fill)
    found, skipped = store.newest()
    assert found is not None
    assert (found.step, skipped) == (100, [])
    assert [path.name for path in tmp_path.iterdir()] == ["step-000100"]
    with pytest.raises(NoSpaceError, match="free some space"):
        require_space(tmp_path, 10**16)


@pytest.mark.parametrize("step", [3, 7, 40])  # within an epoch, which has 12 steps, at its end, in a later one
def test_a_resume_within_an_epoch_repeats_and_skips_no_sample_accelerate_2016(step: int) -> None:
    undisturbed, resumed = (DataOrder(samples=50, batch_size=4, world_size=1, seed=1) for _ in range(2))
    expected = [undisturbed.indices(each, 0).tolist() for each in range(60)]
    assert [resumed.indices(each, 0).tolist() for each in range(step, 60)] == expected[step:]


@pytest.mark.parametrize("schedule", [Cosine(0.1, 20, 3), OneCycle(0.1, 20, 5, 0.01, 0.0)])
def test_the_rates_after_a_resume_are_those_of_an_undisturbed_run_pytorch_60265(schedule: Cosine | OneCycle) -> None:
    resumed = schedule_from_json(schedule_json(schedule))
    assert [resumed.rate(step) for step in range(7, 20)] == [schedule.rate(step) for step in range(20)][7:]


def test_steps_after_a_resume_are_those_of_an_undisturbed_run_lightning_4655() -> None:
    undisturbed, first, second = trainer(), trainer(), trainer()
    rates = [0.1 / (step + 1) for step in range(20)]
    undisturbed.train(rates)
    first.train(rates[:7])
    second.restore(first.snapshot())
    second.train(rates[7:])
    assert second.weights_sha256() == undisturbed.weights_sha256()
