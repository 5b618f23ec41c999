"""The configuration tree composes, whole and typed, and wrong values are sentences that name the key."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from orchestrator.config import CONF, Config, config_from, granted_targets, known_targets, recorded_config
from orchestrator.errors import UserError
from orchestrator.events import RateChosen
from orchestrator.journal_file import read_journal

OWN = [
    "task._target_=my.Task",
    "model._target_=my.Model",
    "optimizer._target_=my.Optimizer",
    "tracking.uri=http://host",
]

FITTING = {
    "convnet": "image_classification",
    "gguf": "finetune_smollm2",
    "mlp": "tabular",
    "moe_transformer": "moe_language_model",
}


def options() -> list[tuple[str, str]]:
    paths = sorted(CONF.glob("*/*.yaml"))
    return [(path.parent.name, path.stem) for path in paths if path.parent.name != "topologies"]  # those are files


@pytest.fixture(scope="module", autouse=True)
def _configuration_tree() -> Iterator[None]:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


def values_of(*overrides: str) -> dict[str, Any]:
    values: Any = OmegaConf.to_container(compose("config", list(overrides)), resolve=True, throw_on_missing=True)
    return dict(values)


def configure(*overrides: str) -> Config:
    return config_from(values_of(*overrides))


@pytest.mark.parametrize(("group", "option"), options())
def test_every_option_composes(group: str, option: str) -> None:
    needed = [own for own in OWN if own.startswith(f"{group}.")] if option in ("own", "server") else []
    task = [f"task={FITTING[option]}"] if option in FITTING else []
    config = configure(*task, f"{group}={option}", *needed)
    assert config_from(config.to_json()) == config


def test_a_task_brings_its_model_and_its_size() -> None:
    tiny, small = configure("task=tabular"), configure("task=tabular", "size=small")
    assert tiny.task["model"]["_target_"] == "trainers.models.mlp.Mlp"
    assert tiny.steps < small.steps
    assert tiny.task["model"]["width"] < small.task["model"]["width"]


def test_fine_tuning_takes_any_policy_and_remembers_where_its_model_lies(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.touch()
    config = configure("task=finetune_smollm2", "lr=autolrs", "steps=500", "lr.validate_every=9", f"model.path={file}")
    assert (config.lr["name"], config.lr["validate_every"]) == ("autolrs", 9)
    assert config.task["model"]["path"] == str(file)
    assert config.task["lora"] == {"rank": 8, "alpha": 16.0, "layers": ["queries", "values"]}
    assert configure("task=finetune_smollm2", "task.lora=null").task["lora"] is None
    with pytest.raises(UserError, match=r"^task\.lora\.rank"):
        configure("task=finetune_smollm2", "task.lora.rank=many")


def test_a_model_can_be_chosen_against_the_tasks_own() -> None:
    config = configure("task=image_classification", "model=own", "model._target_=my.Net", "+model.depth=3")
    assert config.task["model"] == {"_target_": "my.Net", "_partial_": True, "depth": 3}


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        (["steps=0"], "steps is 0"),
        (["steps=-5"], "steps is -5"),
        (["steps=abc"], "steps: Value 'abc'"),
        (["batch_size=0"], "batch_size is 0"),
        (["accumulate=0"], "accumulate is 0"),
        (["clip=-1"], "clip is -1"),
        (["seed=-1"], "seed is -1"),
        (["keep=0"], "keep is 0"),
        (["precision=int8"], "precision is int8"),
        (["cluster.workers=0"], "cluster.workers is 0"),
        (["cluster.gpus_per_worker=2"], "cluster.gpus_per_worker is 2"),
        (["communication.backend=mpi"], "communication.backend is mpi"),
        (["task=tabular", "model=convnet"], "task.model._target_ is trainers.models.convnet.ConvNet"),
        (["model.width=wide"], "task.model.width: Value 'wide'"),
        (["+model.widht=3"], "task.model.widht"),
        (["+task.colour=red"], "task.colour"),
        (["lr.min_lr=0.1", "lr.max_lr=0.01"], "lr.min_lr is 0.1"),
        (["lr=autolrs_paper", "lr.probes=0"], "lr.probes"),
        (["lr=cosine", "lr.rate=-1"], "lr.rate"),
        (["lr=cosine", "+lr.peak=1"], "lr.peak"),
    ],
)
def test_wrong_values_name_the_key(overrides: list[str], key: str) -> None:
    with pytest.raises(UserError, match="^" + key.replace(".", r"\.")):
        configure(*overrides)


def test_a_recorded_configuration_may_only_name_known_classes() -> None:
    recorded = configure("task=tabular").to_json()
    assert recorded_config(recorded) == config_from(recorded)
    recorded["optimizer"]["_target_"] = "os.system"
    with pytest.raises(UserError, match=r"optimizer\._target_=os\.system"):
        recorded_config(recorded)
    assert recorded_config(recorded, granted_targets(["optimizer._target_=os.system"])).steps == 300


def test_what_hides_in_a_list_is_found() -> None:
    recorded = configure("task=tabular").to_json()
    recorded["task"]["parts"] = [{"_target_": "os.system"}]
    with pytest.raises(UserError, match=r"task\.parts\.0\._target_"):
        recorded_config(recorded)


def test_only_classes_can_be_granted() -> None:
    with pytest.raises(UserError, match="steps=5"):
        list(granted_targets(["steps=5"]))
    assert "torch.optim.AdamW" in set(known_targets())


def test_a_warm_start_searches_around_what_an_earlier_run_chose(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    recorded = Path(__file__).parent.parent / "data" / "journal_autolrs.jsonl"
    (tmp_path / "run" / "journal.jsonl").write_bytes(recorded.read_bytes())
    chosen = [event.choice.rate for event in read_journal(recorded) if isinstance(event, RateChosen)]
    config = configure("lr=autolrs", f"lr.warm_start={tmp_path / 'run'}")
    assert config.lr["near"] == chosen[-1]
    assert "warm_start" not in config.lr  # a resume does not need the folder
    with pytest.raises(UserError, match="is no run folder"):
        configure("lr=autolrs", f"lr.warm_start={tmp_path}")
    with pytest.raises(UserError, match="is no run folder"):
        configure("lr=autolrs", f"lr.warm_start={'a' * 5000}")
    for no_folder in ("3", "[a]", "true"):
        with pytest.raises(UserError, match=r"lr\.warm_start is .*, and must be a run folder"):
            configure("lr=autolrs", f"lr.warm_start={no_folder}")
