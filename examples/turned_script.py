"""tuned_script.py with AutoLRS in place of its cosine: no peak to find.    python turned_script.py"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

from orchestrator.learning_rate import AutoLRS, AutoLRSOptions, drive

STEPS = 600

torch.manual_seed(0)
images, labels = map(torch.tensor, load_digits(return_X_y=True))
train, validation, test = torch.randperm(len(images)).split([1000, 300, 497])
images = images.float() / 16
model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10))
optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)


def loss_on(chosen: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(model(images[chosen]), labels[chosen])


def step() -> float:
    optimizer.zero_grad()
    loss = loss_on(train[torch.randint(len(train), (32,))])
    loss.backward()
    optimizer.step()
    return loss.item()


options = AutoLRSOptions(base="AdamW", finish="decay", band=0.05, prefer="largest")  # as lr=autolrs_hold
policy = AutoLRS(STEPS, options=options)
history = drive(policy, step, optimizer, model, validate=lambda: loss_on(validation).item())
print(f"test loss {loss_on(test):.4f}, rate {max(history.rates):.3g}")
