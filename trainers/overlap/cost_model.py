"""What an iteration of serving costs in compute, memory and network, and which of them limits it.

NanoFlow, arXiv 2408.12757, section 3: an iteration takes in as many requests as memory holds and reads all of it once.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainers.overlap.hardware import Hardware
from trainers.overlap.operations import Resource
from trainers.overlap.transformer_sizes import TransformerSizes


@dataclass(frozen=True)
class Workload:
    """Mean tokens of a prompt and of its answer.

    answered: the part of its answer that a request in decode holds in the cache on average; half, if answers end evenly
    (our derivation, not NanoFlow's).
    """

    prompt: float
    answer: float
    answered: float = 0.5


WORKLOADS = {
    "512-512": Workload(512, 512),
    "1024-512": Workload(1024, 512),
    "512-1024": Workload(512, 1024),
    "Splitwise": Workload(1155, 211),
    "LMSYS-Chat": Workload(102, 222),
    "ShareGPT": Workload(246, 322),
}
"""Constant lengths, and means of three traces as others quote them (unverified)."""


@dataclass(frozen=True)
class Cost:
    """Floating-point operations and bytes of all devices together."""

    flops: float
    memory_bytes: float
    network_bytes: float = 0.0

    def seconds(self, hardware: Hardware, devices: int) -> dict[Resource, float]:
        """How long each resource of so many devices is busy."""
        return {
            Resource.COMPUTE: self.flops / (hardware.flops * devices),
            Resource.MEMORY: self.memory_bytes / (hardware.memory_rate * devices),
            Resource.NETWORK: self.network_bytes / (hardware.network_rate * devices),
        }


def operation_costs(model: TransformerSizes, tokens: float) -> dict[str, Cost]:
    """Dense operations and collectives of an iteration over `tokens`, all layers together.

    A product reads its weights, reads its input and writes its output. All-gathers and all-reduces of a layer carry
    4 (devices - 1) times its activations in sum, whichever of them are chosen.
    """
    width, inner = model.hidden, model.inner * model.active_experts
    gathered = 4 * (model.devices - 1) * width * tokens * model.element_bytes * model.layers
    return {
        "KQV": _product(model, tokens, width, width + model.key_value_width),
        "O": _product(model, tokens, width, width),
        "up+gate": _product(model, tokens, width, 2 * inner),
        "down": _product(model, tokens, inner, width),
        "collectives": Cost(0, 0, gathered),
    }


def _product(model: TransformerSizes, tokens: float, width: float, output: float) -> Cost:
    elements = width * output + tokens * (width + output)
    return Cost(2 * tokens * width * output * model.layers, elements * model.element_bytes * model.layers)


@dataclass(frozen=True)
class Iteration:
    """The largest iteration that fits a cluster: requests in decode, tokens in all, and seconds by resource."""

    requests: float
    tokens: float
    seconds: dict[Resource, float]
    devices: int

    @property
    def bound(self) -> Resource:
        """The resource that limits it."""
        return max(self.seconds, key=lambda resource: self.seconds[resource])

    @property
    def tokens_per_second(self) -> float:
        """Of one device, prompt and answer counted, if the limiting resource is always busy."""
        return self.tokens / self.seconds[self.bound] / self.devices


def iteration(model: TransformerSizes, hardware: Hardware, workload: Workload) -> Iteration:
    """The steady state: each request decodes a token, and as many prompts enter as answers end."""
    devices = model.devices
    free = hardware.memory * devices - model.parameters * model.element_bytes
    requests = free / (model.token_bytes * (workload.prompt + workload.answered * workload.answer))
    tokens = requests * (workload.prompt + workload.answer) / workload.answer
    whole = Cost(
        flops=2 * tokens * model.nominal,
        memory_bytes=hardware.memory * devices,
        network_bytes=operation_costs(model, tokens)["collectives"].network_bytes,
    )
    return Iteration(requests, tokens, whole.seconds(hardware, devices), devices)


def optimal_tokens_per_second(flops: float, parameters: float) -> float:
    """Of one device that computes all the time at `flops`; the optimum of a workload that compute limits."""
    return flops / (2 * parameters)
