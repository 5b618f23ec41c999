"""Devices by their data sheets, for the cost model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hardware:
    """One device: memory in bytes, rates in bytes and floating-point operations a second, links one way."""

    memory: float
    memory_rate: float
    network_rate: float
    flops: float


A100 = Hardware(memory=80e9, memory_rate=2000e9, network_rate=300e9, flops=312e12)
H100 = Hardware(memory=80e9, memory_rate=3352e9, network_rate=450e9, flops=989e12)
H200 = Hardware(memory=141e9, memory_rate=4800e9, network_rate=450e9, flops=989e12)

HARDWARE = {"A100-80G": A100, "H100-80G": H100, "H200-141G": H200}

A100_ATTAINED_FLOPS = 260e12
"""What matrix products attain on an A100: the constant behind NanoFlow's published optimum of 1857 tokens a second."""
