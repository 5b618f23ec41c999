"""A script as one has it: AdamW under a cosine, whose peak took a grid of runs to find.    python tuned_script.py"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.optim.lr_scheduler import OneCycleLR

STEPS = 600

torch.manual_seed(0)
images, labels = map(torch.tensor, load_digits(return_X_y=True))
train, validation, test = torch.randperm(len(images)).split([1000, 300, 497])
images = images.float() / 16
model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10))
optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
scheduler = OneCycleLR(optimizer, max_lr=1e-2, total_steps=STEPS, pct_start=0.05)  # the best of four peaks


def loss_on(chosen: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(model(images[chosen]), labels[chosen])


for _ in range(STEPS):
    optimizer.zero_grad()
    loss_on(train[torch.randint(len(train), (32,))]).backward()
    optimizer.step()
    scheduler.step()

print(f"test loss {loss_on(test):.4f}")
