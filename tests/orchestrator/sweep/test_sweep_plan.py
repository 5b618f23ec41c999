"""What cannot be searched is told before anything is started or written."""

from pathlib import Path

import pytest

from orchestrator.composing import configured
from orchestrator.errors import UserError
from orchestrator.sweep.book import Trial
from orchestrator.sweep.plan import planned
from orchestrator.sweep.results import best_text
from orchestrator.sweep.space import Dimension
from orchestrator.word_files import expanded

SMALL = ("task=tabular", "lr=cosine", "tracking=none", "steps=20", "cluster.workers=1")


def test_a_plan_knows_kinds_of_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = [
        *SMALL,
        "lr.rate=1e-4..1e-1",
        "batch_size=8..16",
        "optimizer=[adamw,sgd]",
        "seed=3",
        "hydra.sweep.dir=here",
    ]
    plan = planned(words)
    assert plan.space == (
        Dimension("lr.rate", (), 1e-4, 1e-1, logarithmic=True),
        Dimension("batch_size", (), 8, 16, whole=True),
        Dimension("optimizer", ("adamw", "sgd")),
    )
    assert (plan.search, plan.trials, plan.seed, plan.folder) == ("bayes", 20, 3, tmp_path / "here")
    assert plan.config.batch_size == 12
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "nothing is searched"),
        (["lr.ratee=1e-4..1e-1"], "lr.ratee"),
        (["nothing=[1,2]"], "nothing"),
        (["lr=1..2"], "lr names a file of conf/lr and has no range: list names, as in lr=[autolrs,"),
        (["lr=[cosine,cosin]"], "cosin"),
        (["lr.rate=-1..1"], "lr.rate"),
        (["cluster.workers=1..4"], "cluster.workers is the same for all trials"),
        (["search=grid", "lr.rate=1e-4..1e-1"], "search=grid tries every value, and lr.rate has a range"),
        (["search=grid", "seed=[1,2]", "trials=3"], "search=grid tries all 2 combinations: leave trials=3 out"),
        (["search=pb2", "optimizer.weight_decay=0..1"], "search=pb2 changes settings while trainings run"),
        (["search=pb2", "lr.rate=1e-4..1e-1"], "search=pb2 sets the rate of each stage itself: choose lr=constant"),
        (["lr.rate=1e-4..1e-1", "hydra.job.chdir=true"], "has no meaning in a sweep"),
        (["precision=0..1"], "precision is 'float32', which has no range"),
        (["seed=0.5..2"], "seed is a whole number"),
        (["lr.rate=1e-4..1e-1", "stepz=3"], "stepz"),
        (["lr.rate=1e-4..1e-1", "evaluate=here"], "evaluate=here scores a run"),
        (["lr.rate=1e-4..1e-1", "seed=-1"], "seed is -1"),
    ],
)
def test_what_cannot_be_searched_is_a_sentence(words: list[str], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        planned([*SMALL, *words])
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_list_may_be_fixed_or_searched() -> None:
    words = [*SMALL[:1], "lr=autolrs", "steps=2000", "tracking=none", "seed=[1,2]"]
    assert planned([*words, "lr.also=[momentum]"]).config.lr["also"] == ["momentum"]
    assert planned([*words, "lr.also=[],[momentum]"]).space[-1].choices == ("[]", "[momentum]")


def test_the_best_configuration_launches_again(tmp_path: Path) -> None:
    plan = planned([*SMALL, "lr.rate=1e-4..1e-1", "optimizer=[adamw,sgd]"])
    file = tmp_path / "best.yaml"
    file.write_text(best_text(plan, Trial(3, {"lr.rate": 0.0123, "optimizer": "sgd"}, "3", "FINISHED", 0.5)))
    config = configured(expanded([f"@{file}", "seed=9"]))
    assert (config.lr["rate"], config.optimizer["_target_"], config.seed) == (0.0123, "torch.optim.SGD", 9)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- task._target_=evil.Task\n", "names code of its own, task._target_=evil.Task"),
        ("- hydra.searchpath=[file:///x]\n", "is no plain KEY=VALUE"),
        ("- ++hydra.searchpath=[file:///x]\n", "is no plain KEY=VALUE"),
        ("- --config-dir=/x\n", "is no plain KEY=VALUE"),
        ("- 'task={_target_: evil.Task}'\n", "is no plain KEY=VALUE"),
        ("- ' task._target_ =evil.Task'\n", "names code of its own"),
        ("seed: 1\n", "is no list of KEY=VALUE"),
        ("- !!python/object/apply:os.system [id]\n", "cannot be read as YAML"),
        ("[" * 3000, "cannot be read as YAML"),
    ],
)
def test_a_file_of_words_decides_about_no_code(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "best.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=sentence.split(" of ")[0]):
        expanded([f"@{file}"])
    if text == "- task._target_=evil.Task\n":
        assert expanded([f"@{file}", "task._target_=evil.Task"]) == ["task._target_=evil.Task"] * 2
