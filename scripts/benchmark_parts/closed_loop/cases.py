"""What is trained on which network, and in which ways: a grid of tuned peaks by plain DDP, and launches that decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TOPOLOGIES = Path(__file__).parents[3] / "conf" / "topologies"
VALIDATIONS = 20  # a run, as a launch makes them by itself
SAMPLES = 256  # held out, on which both sides are scored
PEAKS = (1e-3, 3e-3, 1e-2, 3e-2)  # of plain DDP's cosine
DECISIONS = ("communication", "overlap", "batch", "rate")


@dataclass(frozen=True)
class Workload:
    """A task of conf/task for both sides; `batch`: samples a rank and step. What is None is as conf/ has it."""

    task: str
    steps: int | None = None
    batch: int | None = None
    model: Mapping[str, int] | None = None
    context: int | None = None  # bytes a window of a text

    @property
    def overrides(self) -> list[str]:
        """The workload in the words of `orchestrate run`."""
        sizes = {"steps": self.steps, "batch_size": self.batch, "task.context": self.context}
        sizes |= {f"model.{key}": value for key, value in (self.model or {}).items()}
        return [f"task={self.task}", *(f"{key}={value}" for key, value in sizes.items() if value is not None)]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Case:
    """A workload on a network of the lab."""

    network: str
    workload: Workload

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.network}, {self.workload.task}"

    @property
    def file(self) -> Path:
        """The network's topology file."""
        return TOPOLOGIES / f"{self.network}.yaml"


@dataclass(frozen=True)
class Arm:
    """A launch by what is written on its command line besides the workload."""

    name: str
    overrides: tuple[str, ...]


MUON = "optimizer=muon"
ALL = Arm("all", ("decide=all", MUON))
NONE = Arm("none", ("decide=none",))
WITHOUT = {
    **{name: Arm(f"all but {name}", ("decide=all", f"decide.{name}=given", MUON)) for name in DECISIONS[:3]},
    "rate": Arm("all but rate", ("decide=all", "decide.rate=given", "lr=cosine")),  # AdamW at lr=cosine's own peak
    "optimizer": Arm("all but the optimizer", ("decide=all",)),
}
SHIPPED_ARMS = (NONE, Arm(ALL.name, WITHOUT["optimizer"].overrides))  # tasks as shipped keep their own optimizer

LANGUAGE = Workload(
    "language_model",
    steps=1500,
    batch=4,
    model={"width": 96, "layers": 2, "heads": 3, "key_value_heads": 1},
    context=64,
)
IMAGES = Workload("image_classification", steps=800, batch=2, model={"width": 32})
CASES = (Case("two_boxes", LANGUAGE), Case("torus3x3", IMAGES))
SHIPPED = tuple(map(Workload, ("language_model", "image_classification", "tabular", "moe_language_model")))
