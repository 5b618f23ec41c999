"""Inputs near valid ones: bytes changed here and there, and JSON in which values swap types, grow, or stand twice."""

import json
import random
from collections.abc import Sequence
from typing import Any

TEXTS = [
    "",
    "\x00",
    "💥\u202e\ud7ff",
    "../../escape",
    "/etc/passwd",
    "a" * 300,
    "nan",
    "1e308",
    "9" * 5000,
    "1/0",
    "-0",
]
NUMBERS = [0, 1, -1, 2, 2**31, 2**63, -(2**63), 2**64, 10**30, 1e308, -1e308, 5e-324, 0.5]
ODD = [
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"$float": "inf"},
    {"$float": []},
    {"_target_": "os.system"},
]
VERBATIM = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "9" * 5000,
    "[" * 3000 + "]" * 3000,
    '{"a":' * 900 + "1" + "}" * 900,
]
TOKENS = [
    b"\x00",
    b"\xff\xfe",
    b"\n",
    b"\r",
    b"\t",
    b" ",
    b'"',
    b"<",
    b"&",
    b"[",
    b"{",
    b"-",
    b"1e999",
    b"\x1b[2J",
    b": ",
]
TOKENS += [
    b"<!DOCTYPE x>",
    b"&lol;",
    b"!!python/object/apply:os.system",
    b"&a [*a]",
    b"NV18",
    b"GPU0",
    b"9" * 400,
    b"]}",
]
WIDTHS = (1, 2, 4, 8)


class _Verbatim:
    """Text that stands in JSON as it is."""

    def __init__(self, text: str) -> None:
        self.text = text


def mutated_bytes(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds after one to four small changes."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.randint(1, 4)):
        rng.choice(_CHANGES)(rng, data, seeds)
    return bytes(data)


def mutated_json(rng: random.Random, seed: Any) -> str:
    """The JSON of a value in which one to three places have changed, and now and then a key stands twice."""
    held = [json.loads(json.dumps(seed))]  # in a list, so that the whole may be replaced like any part
    for _ in range(rng.randint(1, 3)):
        _change_one_place(rng, held)
    return _text(rng, held[0])


def _change_one_place(rng: random.Random, held: list[Any]) -> None:
    container: Any = held
    key: Any = 0
    while isinstance(container[key], dict | list) and container[key] and rng.random() < 0.9:
        container = container[key]
        key = rng.choice(list(container) if isinstance(container, dict) else range(len(container)))
    kind = rng.randrange(6)
    if kind == 0 and container is not held:
        del container[key]
    elif kind == 1 and isinstance(container, list) and container is not held:
        container.insert(key, container[rng.randrange(len(container))])
    elif kind == 2 and isinstance(container, dict):
        container[rng.choice([*container, *TEXTS])] = container[rng.choice(list(container))]
    else:
        container[key] = _other(rng, container[key])


def _other(rng: random.Random, value: Any) -> Any:
    """Another value, often near the old one."""
    near = {int: lambda: value + rng.choice([-1, 1]), float: lambda: -value, str: lambda: value[: len(value) // 2]}
    kinds = [lambda: rng.choice(NUMBERS), lambda: rng.choice(TEXTS), lambda: json.loads(json.dumps(rng.choice(ODD)))]
    kinds += [lambda: _Verbatim(rng.choice(VERBATIM)), lambda: str(value)[:2000], lambda: [value]]
    return rng.choice([near.get(type(value), kinds[0]), *kinds])()


def _text(rng: random.Random, value: Any) -> str:
    if isinstance(value, _Verbatim):
        return value.text
    if isinstance(value, list):
        return f"[{','.join(_text(rng, each) for each in value)}]"
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}:{_text(rng, each)}" for key, each in value.items()]
        if parts and rng.random() < 0.02:
            parts.append(rng.choice(parts))
        return f"{{{','.join(parts)}}}"
    return json.dumps(value)


def _place(rng: random.Random, data: bytearray) -> int:
    return rng.randrange(len(data) + 1)


def _flip(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _cut(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[_place(rng, data) :]


def _remove(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    start = _place(rng, data)
    del data[start : start + rng.randint(1, 40)]


def _insert(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    start = _place(rng, data)
    data[start:start] = rng.choice(TOKENS)


def _repeat(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    start = _place(rng, data)
    data[start:start] = data[start : start + rng.randint(1, 200)] * rng.choice([1, 2, 20])


def _splice(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = rng.choice(seeds)
    start = rng.randrange(len(other) + 1)
    data[_place(rng, data) :] = other[start:]


def _overwrite(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    """A number of a header, in either byte order; most headers stand in front."""
    width, end = rng.choice(WIDTHS), rng.choice([64, max(len(data), 1)])
    number = rng.choice([0, 1, 2**7, 2**15, 2**31, 2**63, -1, rng.randrange(300)]) % 2 ** (8 * width)
    start = rng.randrange(end)
    data[start : start + width] = number.to_bytes(width, rng.choice(["little", "big"]))


def _swap_digits(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    places = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
    if places:
        place = rng.choice(places)
        data[place : place + 1] = rng.choice([b"0", b"9", b"-", b"1e9", b"", b"99999999999"])


_CHANGES = [_flip, _cut, _remove, _insert, _repeat, _splice, _overwrite, _swap_digits]
