"""Rows that travel between ranks, with gradients that travel back."""

from typing import Any

import torch
from torch import Tensor

from comm_plans.runtime.all_to_all.routes import Route
from trainers.experts.stopwatch import Stopwatch


def carried(rows: Tensor, route: Route, watch: Stopwatch) -> Tensor:
    """Rows (sent, width) as they arrive by a route: (received, width). watch: also times the gradient's way back."""
    result: Tensor = _Carried.apply(rows, route, watch)  # type: ignore[no-untyped-call]
    return result


class _Carried(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, route: Route, watch: Stopwatch) -> Tensor:
        ctx.route, ctx.watch = route, watch
        with watch.running(rows.device):
            return route.carry(rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        with ctx.watch.running(gradient.device):
            return ctx.route.back.carry(gradient), None, None
