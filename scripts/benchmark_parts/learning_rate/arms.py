"""What is compared: AutoLRS, peers as their makers recommend them, and fixed rates on AutoLRS's own optimizer.

A peer with a grid of peak rates is tuned: it's trained once for each, and validation picks one for each seed.
"""

from __future__ import annotations

from typing import Any

import dadaptation
import prodigyopt
import schedulefree
import torch
from benchmark_parts.learning_rate.arm import Arm
from benchmark_parts.learning_rate.training import MakeOptimizer, Parameters

WARM_UP = 0.05  # of the steps
ADAMW_PEAKS = (3.2e-4, 1e-3, 3.2e-3, 1e-2, 3.2e-2)
SGD_PEAKS = (0.01, 0.032, 0.1, 0.32)
FIXED_RATES = (0.0025, 0.01, 0.03)


def peers() -> list[Arm]:
    """Every peer, with a grid's points one after another."""
    return [
        *(peer("cosine AdamW", adamw, cosine(peak), f" {peak:g}") for peak in ADAMW_PEAKS),
        *(peer("linear AdamW", adamw, linear(peak), f" {peak:g}") for peak in ADAMW_PEAKS),
        *(peer("cosine SGD", sgd, cosine(peak), f" {peak:g}") for peak in SGD_PEAKS),
        peer("Schedule-Free AdamW", schedule_free_adamw, constant(0.0025)),
        peer("Schedule-Free SGD", schedule_free_sgd, constant(1.0)),
        peer("Prodigy + cosine", prodigy, cosine(1.0, warmup=0.0), ", plain"),
        peer("Prodigy + cosine", prodigy_warmed, cosine(1.0), ", warmed up"),
        peer("D-Adaptation + cosine", d_adapt_adam, cosine(1.0)),
    ]


def peer(family: str, optimizer: MakeOptimizer, policy: dict[str, Any], point: str = "") -> Arm:
    """One point of a family's grid."""
    return Arm(family + point, family, "peer", optimizer, policy)


def tuned_at(peaks: tuple[float, ...]) -> list[Arm]:
    """Cosine and linear decay of AdamW at these peaks alone, for long runs."""
    names = {f"{shape} AdamW {peak:g}" for shape in ("cosine", "linear") for peak in peaks}
    return [arm for arm in peers() if arm.name in names]


def autolrs() -> Arm:
    """The method, with the budget that lets its search come on top."""
    return Arm("AutoLRS", "AutoLRS", "method", base, {"name": "autolrs"})


def fixed_rates() -> list[Arm]:
    """The method without its search: what it would be to know a good rate, or to guess one."""
    known = [(f"fixed {rate:g}", {"name": "autolrs", "known_lr": rate}) for rate in FIXED_RATES]
    return [Arm(name, name, "fixed rate", base, policy) for name, policy in known]


def base(parameters: Parameters, steps: int) -> torch.optim.Optimizer:
    """The method's own optimizer, as in conf/optimizer/schedule_free.yaml; the policy warms up."""
    return schedulefree.AdamWScheduleFree(parameters, betas=(0.8, 0.99), weight_decay=0.01, r=0.5)


def adamw(parameters: Parameters, steps: int) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, betas=(0.9, 0.99), weight_decay=0.01, fused=True)


def sgd(parameters: Parameters, steps: int) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, momentum=0.9, weight_decay=5e-4, fused=True)


def schedule_free_adamw(parameters: Parameters, steps: int) -> torch.optim.Optimizer:
    return schedulefree.AdamWScheduleFree(parameters, warmup_steps=int(WARM_UP * steps))


def schedule_free_sgd(parameters: Parameters, steps: int) -> torch.optim.Optimizer:
    return schedulefree.SGDScheduleFree(parameters, warmup_steps=int(WARM_UP * steps))


def prodigy(parameters: Parameters, steps: int) -> torch.optim.Optimizer:
    return prodigyopt.Prodigy(parameters)


def prodigy_warmed(parameters: Parameters, steps: int) -> torch.optim.Optimizer:
    return prodigyopt.Prodigy(parameters, safeguard_warmup=True, use_bias_correction=True)


def d_adapt_adam(parameters: Parameters, steps: int) -> torch.optim.Optimizer:
    return dadaptation.DAdaptAdam(parameters)


def constant(rate: float) -> dict[str, Any]:
    return {"name": "constant", "rate": rate}


def cosine(peak: float, warmup: float = WARM_UP) -> dict[str, Any]:
    return {"name": "cosine", "rate": peak, "warmup": warmup}


def linear(peak: float) -> dict[str, Any]:
    return {"name": "linear", "rate": peak, "warmup": WARM_UP, "decay": 1 - WARM_UP}
