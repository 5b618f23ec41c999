"""What AutoLRS is compared with: one word of the configuration each; it learns, and is gone back from to the bit."""

import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from orchestrator.config import CONF, build, config_from
from orchestrator.learning_rate import make_policy
from trainers import Trainer, TrainerOptions

BASELINES = ("schedule_free_adamw", "schedule_free_sgd", "prodigy", "d_adaptation", "hypergradient")


@pytest.mark.parametrize("name", BASELINES)
def test_one_word_chooses_schedule_and_optimizer(name: str) -> None:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        composed = compose("config", ["task=tabular", "steps=60", f"lr={name}"])
    config = config_from(OmegaConf.to_container(composed, resolve=True))
    assert config.lr["name"] == name
    torch.set_num_threads(1)
    trainer = Trainer(build(config.task), build(config.optimizer), TrainerOptions(8))
    policy = make_policy(config.lr, config.steps)
    assert policy.cost().probe_steps == 0
    schedule = policy.ask().schedule
    before = trainer.validate()["loss"]
    trainer.train([schedule.rate(step) for step in range(20)])
    middle = trainer.snapshot()
    rest = [schedule.rate(step) for step in range(20, 60)]
    losses, weights = trainer.train(rest), trainer.weights_sha256()
    assert trainer.validate()["loss"] < before
    trainer.restore(middle)
    assert (trainer.train(rest), trainer.weights_sha256()) == (losses, weights)
