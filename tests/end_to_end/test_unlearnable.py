"""Searches that cannot find anything say so: too few steps, no finite loss, few samples, a loss that does not react."""

import json
from pathlib import Path

import pytest
from commands import orchestrate, run_folder

TASK = '''
"""A task that a search of the rate can learn nothing from."""

import torch
from torch import nn

from trainers import Splits, Task


class Broken(Task):
    def build_model(self):
        return nn.Linear(2, 1)

    def build_data(self):
        return Splits(*(torch.ones(count, 2) for count in (64, 40, 40)))

    def loss(self, model, batch):
        return model(batch).mean() * float("nan")


class Deaf(Broken):
    def loss(self, model, batch):
        return 1 + 0 * model(batch).mean()
'''
QUICK = ["tracking=none", "cluster.workers=1", "steps=240", "batch_size=8"]


def launched(folder: Path, *arguments: str):
    (folder / "strange.py").write_text(TASK)
    return orchestrate(folder, "run", *QUICK, *arguments, run_folder(folder, "run"))


def test_too_few_steps_for_a_search_are_refused_with_the_smallest_number(tmp_path: Path) -> None:
    ended = launched(tmp_path, "task=tabular", "steps=50")
    assert ended.returncode == 2
    assert "steps is 50, too few to search a rate: set steps to 200 or more" in ended.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_with_strict_false_they_train_at_a_usual_rate(tmp_path: Path) -> None:
    ended = launched(tmp_path, "task=tabular", "steps=50", "lr.strict=false")
    assert ended.returncode == 0, ended.stderr
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["train_steps"], result["probe_steps"]) == (50, 0)


@pytest.mark.slow
def test_a_loss_that_is_not_finite_from_the_first_step_on(tmp_path: Path) -> None:
    ended = launched(tmp_path, "task=own", "task._target_=strange.Broken")
    assert ended.returncode == 2
    assert "the loss is not finite at the very first step, whatever the rate" in ended.stdout + ended.stderr
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["state"] == "FAILED"
    assert "not finite at the very first step" in result["reason"]


@pytest.mark.slow
def test_a_loss_that_does_not_react_and_few_samples_are_said(tmp_path: Path) -> None:
    ended = launched(tmp_path, "task=own", "task._target_=strange.Deaf")
    assert ended.returncode == 0, ended.stderr
    assert "the loss hardly reacts to the rate" in ended.stdout
    assert "rates are compared on 40 validation samples only" in ended.stdout
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["state"], result["settings"]) == ("FINISHED", {})
