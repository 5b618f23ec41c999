"""Schedule-Free Muon: hidden matrices take orthogonal steps, all else Adam's, and what is shipped is an average.

Muon (K. Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024) replaces the momentum of a matrix by
the nearest matrix whose singular values are about one, so that rare directions move as far as common ones. Steps are
as long as AdamW's usual ones (arXiv 2502.16982, section 2.2), so that one rate serves all parameters. Around both lies
the averaging of Schedule-Free (arXiv 2405.15682), which needs no decay of the rate.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from trainers.frozen import trained

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # a quintic that is steep at 0; from Jordan
ITERATIONS = 5
ADAMS = 0.2  # the root mean square of AdamW's steps, as a share of the rate; from arXiv 2502.16982
TINY = 1e-7


class ScheduleFreeMuon(Optimizer):
    """params: groups as `groups_of` makes them; parameters without `matrix` in their group are stepped by Adam.

    momentum: of matrices, as Nesterov's. betas: the share of the average in the point where gradients are taken, and
    the decay of Adam's squared gradients. r: iterates weigh as their step to this power. weight_decay is decoupled.
    Like Schedule-Free's own classes it must be put into `train` mode to step, and into `eval` mode to be scored.
    Raises ValueError for betas out of range.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.01,
        momentum: float = 0.9,
        betas: tuple[float, float] = (0.7, 0.99),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        r: float = 1.0,
    ) -> None:
        if not (0 < betas[0] <= 1 and 0 <= betas[1] < 1):
            raise ValueError(f"betas are {tuple(betas)}: set the first above 0 and to 1 at most, the second below 1.")
        own = {"lr": lr, "momentum": momentum, "betas": betas, "eps": eps, "weight_decay": weight_decay, "r": r}
        progress = {"matrix": False, "k": 0, "weight_sum": 0.0, "lr_max": 0.0, "train_mode": False}
        super().__init__(params, own | progress)

    @staticmethod
    def groups_of(model: nn.Module) -> list[dict[str, Any]]:
        """The trained weights of linear and 2-D convolution layers; all else. What an embedding shares is else."""
        looked_up = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Embedding)}
        layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
        hidden = {id(layer.weight) for layer in layers} - looked_up
        parameters = trained(model)
        matrices = [parameter for parameter in parameters if id(parameter) in hidden]
        others = [parameter for parameter in parameters if id(parameter) not in hidden]
        return [{"params": each, "matrix": each is matrices} for each in (matrices, others) if each]

    def train(self) -> None:
        """Let the parameters be where gradients are taken."""
        self._turn(training=True)

    def eval(self) -> None:
        """Let the parameters be the average."""
        self._turn(training=False)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Step by the gradients that there are. Raises RuntimeError outside of `train` mode."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if not group["train_mode"]:
                raise RuntimeError("The optimizer is not in its train mode: call optimizer.train() before its steps.")
            stepped = [parameter for parameter in group["params"] if parameter.grad is not None]
            for parameter in stepped:
                if not (state := self.state[parameter]):
                    state["z"] = parameter.detach().clone()
                    state["momentum" if group["matrix"] else "exp_avg_sq"] = torch.zeros_like(parameter)
            steps = self._matrix_steps(stepped, group) if group["matrix"] else self._adam_steps(stepped, group)
            self._move(list(steps), group)
        return loss

    def _matrix_steps(self, matrices: Sequence[Tensor], group: dict[str, Any]) -> Iterator[tuple[Tensor, Tensor]]:
        """Each matrix and its step; those of one shape are made orthogonal together."""
        alike: defaultdict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for matrix in matrices:
            momentum = self.state[matrix]["momentum"]
            assert matrix.grad is not None
            momentum.lerp_(matrix.grad, 1 - group["momentum"])
            flat = matrix.grad.lerp(momentum, group["momentum"]).flatten(1)
            alike[flat.shape].append((matrix, flat))
        for shape, pairs in alike.items():
            steps = orthogonal(torch.stack([flat for _, flat in pairs])) * (ADAMS * max(shape) ** 0.5)
            yield from ((matrix, step.view_as(matrix)) for (matrix, _), step in zip(pairs, steps, strict=True))

    def _adam_steps(self, parameters: Sequence[Tensor], group: dict[str, Any]) -> Iterator[tuple[Tensor, Tensor]]:
        """Each parameter and its step. The average takes the place of Adam's first moment."""
        decay = group["betas"][1]
        for parameter in parameters:
            squares = self.state[parameter]["exp_avg_sq"]
            squares.mul_(decay).addcmul_(parameter.grad, parameter.grad, value=1 - decay)
            scale = (squares / (1 - decay ** (group["k"] + 1))).sqrt_().add_(group["eps"])
            yield parameter, parameter.grad / scale

    def _move(self, steps: Sequence[tuple[Tensor, Tensor]], group: dict[str, Any]) -> None:
        """Step z, average it, and move to the point between both where the next gradient is taken."""
        rate, share = group["lr"], group["betas"][0]
        group["k"] += 1
        group["lr_max"] = max(rate, group["lr_max"])
        weight = group["k"] ** group["r"] * group["lr_max"] ** 2
        group["weight_sum"] += weight
        newest = weight / group["weight_sum"] if group["weight_sum"] else 0.0
        if not steps:
            return
        parameters, moves = [list(each) for each in zip(*steps, strict=True)]
        iterates = [self.state[parameter]["z"] for parameter in parameters]
        torch._foreach_add_(moves, parameters, alpha=group["weight_decay"])
        torch._foreach_lerp_(parameters, iterates, newest)
        torch._foreach_add_(parameters, moves, alpha=rate * (share * (1 - newest) - 1))
        torch._foreach_sub_(iterates, moves, alpha=rate)

    @torch.no_grad()
    def _turn(self, training: bool) -> None:
        for group in self.param_groups:
            if group["train_mode"] == training:
                continue
            group["train_mode"] = training
            share = group["betas"][0]
            towards_z = 1 - share if training else 1 - 1 / share
            for parameter in group["params"]:
                if state := self.state[parameter]:
                    parameter.lerp_(state["z"], towards_z)


def orthogonal(matrices: Tensor) -> Tensor:
    """Matrices (count, rows, columns) with their singular values brought near one, by Newton and Schulz's iteration."""
    wide = matrices if matrices.shape[-2] <= matrices.shape[-1] else matrices.mT
    x: Tensor = (wide / (wide.norm(dim=(-2, -1), keepdim=True) + TINY)).contiguous()
    a, b, c = NEWTON_SCHULZ
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide is matrices else x.mT
