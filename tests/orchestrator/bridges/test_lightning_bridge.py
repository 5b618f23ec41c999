"""Lightning's loop with the callback takes the very steps that a plain loop takes."""

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from orchestrator.errors import UserError
from orchestrator.learning_rate import AutoLRS, History, drive

lightning = pytest.importorskip("lightning.pytorch")
from orchestrator.bridges.lightning import AutoLRSCallback  # noqa: E402

STEPS = 200
BATCHES = torch.randn(400, 16, 8, generator=torch.Generator().manual_seed(1))
HELD_OUT = torch.randn(64, 8, generator=torch.Generator().manual_seed(2))


def target(x: Tensor) -> Tensor:
    return torch.sin(x).sum(-1, keepdim=True)


class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
    def __init__(self, optimizers: int = 1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
        self.number = optimizers
        self.automatic_optimization = optimizers == 1

    def loss(self, x: Tensor) -> Tensor:
        return nn.functional.mse_loss(self.net(x), target(x))

    def training_step(self, batch: Tensor, number: int) -> Tensor:
        return self.loss(batch[0])

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        return [torch.optim.AdamW(self.parameters(), lr=123.0) for _ in range(self.number)]


def validated(module: Module) -> float:
    assert not module.training
    with torch.no_grad():
        return float(module.loss(HELD_OUT))


def fitted(module: Module, callback: AutoLRSCallback, **options: object) -> None:
    trainer = lightning.Trainer(
        max_steps=-1, callbacks=[callback], logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, accelerator="cpu", **options,
    )  # fmt: skip
    trainer.fit(module, DataLoader(BATCHES, batch_size=1))


def plainly() -> tuple[Module, History]:
    module = Module()
    optimizer = module.configure_optimizers()[0]
    batches = iter(BATCHES)

    def step() -> float:
        optimizer.zero_grad()
        loss = module.loss(next(batches))
        loss.backward()
        optimizer.step()
        return loss.item()

    def score() -> float:
        module.eval()
        try:
            return validated(module)
        finally:
            module.train()

    return module, drive(AutoLRS(STEPS), step, optimizer, module, validate=score)


@pytest.mark.filterwarnings("ignore")
def test_the_steps_are_those_of_a_plain_loop() -> None:
    module, callback = Module(), AutoLRSCallback(STEPS, validate=validated)
    fitted(module, callback)
    plain, history = plainly()
    assert callback.history == history
    assert len(history.rates) == STEPS
    for mine, theirs in zip(module.parameters(), plain.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.filterwarnings("ignore")
def test_a_step_of_several_batches_counts_once() -> None:
    callback = AutoLRSCallback(STEPS)
    fitted(Module(), callback, accumulate_grad_batches=2)
    assert len(callback.history.losses) == STEPS


@pytest.mark.filterwarnings("ignore")
def test_a_module_that_optimizes_by_itself_is_refused() -> None:
    with pytest.raises(UserError, match="needs a module with one optimizer"):
        fitted(Module(optimizers=2), AutoLRSCallback(STEPS))
