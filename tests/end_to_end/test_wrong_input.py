"""Wrong input costs a second: one sentence that names the key or file, exit code 2, nothing written, no Ray."""

import gzip
from pathlib import Path

import pytest
from commands import orchestrate

CASES = {
    "unknown option": (["task=chess"], "task/chess"),
    "unknown key": (["stepz=3"], "stepz"),
    "wrong type": (["steps=many"], "steps"),
    "interval upside down": (["lr.min_lr=1", "lr.max_lr=0.1"], "lr.min_lr"),
    "no budget": (["steps=0"], "steps is 0"),
    "negative budget": (["steps=-3"], "steps is -3"),
    "too many workers": (["cluster.workers=99"], "99"),
    "missing data": (["task.data=nowhere"], "nowhere"),
    "missing data of a dry run": (["task.data=nowhere", "dry_run=true"], "nowhere"),
    "unknown table": (["task=tabular", "task.data=titanic"], "titanic"),
    "no class": (["task=own"], "task._target_"),
    "evaluating nothing": (["evaluate=nowhere"], "nowhere"),
    "nothing answers": (["cluster=existing", "cluster.address=127.0.0.1:1"], "cluster.address=127.0.0.1:1"),
    "no address": (["cluster=existing", "cluster.address=somewhere"], "cluster.address=somewhere"),
    "no place for the run folder": (["hydra.run.dir=/dev/null/run"], "hydra.run.dir="),
    "malformed override": (["=3"], "override"),
}


QUICK = (
    "unknown option",
    "wrong type",
    "too many workers",
    "missing data",
    "missing data of a dry run",
    "nothing answers",
    "malformed override",
)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if case in QUICK else pytest.mark.slow) for case in CASES]
)
def test_one_sentence_and_exit_code_2(case: str, tmp_path: Path) -> None:
    overrides, named = CASES[case]
    ended = orchestrate(tmp_path, "run", *overrides)
    assert ended.returncode == 2, ended.stderr
    assert named in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
    assert list(tmp_path.rglob("*")) == []


def test_truncated_images_are_named(tmp_path: Path) -> None:
    data = tmp_path / "images"
    data.mkdir()
    whole = gzip.compress(b"\x00\x00\x08\x03" + (5).to_bytes(4, "big") + b"\x00\x00\x00\x1c" * 2 + bytes(5 * 784))
    for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz"):
        (data / name).write_bytes(whole[: len(whole) // 2])
    ended = orchestrate(tmp_path, "run", "task=image_classification", f"task.data={data}")
    assert ended.returncode == 2
    assert str(data) in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["resume", "report", "compare"])
def test_a_folder_that_is_no_run_folder(command: str, tmp_path: Path) -> None:
    ended = orchestrate(tmp_path, command, str(tmp_path))
    assert ended.returncode == 2
    assert "is no run folder" in ended.stderr
    assert list(tmp_path.rglob("*")) == []


def test_a_dry_run_loads_nothing_heavy_and_writes_nothing(tmp_path: Path) -> None:
    ended = orchestrate(tmp_path, "run", "dry_run=true", "task=tabular")
    assert ended.returncode == 0, ended.stderr
    for word in ("tabular", "2 workers", "autolrs", "search"):
        assert word in ended.stdout
    assert list(tmp_path.rglob("*")) == []
