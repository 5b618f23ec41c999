"""The model of a finished run, loaded by MLflow alone: it predicts as the trained one, and holds no pickle."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlflow_runs import recorded, server, trained_run
from sklearn.datasets import load_wine

from orchestrator.prediction import Predictor

mlflow = pytest.importorskip("mlflow")

EXAMPLES = Path(__file__).parents[2] / "examples"
WINE = ["task=tabular", "task.data=wine"]
LOAD = """
import sys, mlflow
from sklearn.datasets import load_wine
rows, classes = load_wine(return_X_y=True)
model = mlflow.pyfunc.load_model(f"runs:/{sys.argv[1]}/model")
assert (model.predict(rows).argmax(-1) == classes).mean() > 0.8
assert "ray" not in sys.modules
"""


def loaded(uri: str, run_id: str, **options: Any) -> Any:
    mlflow.set_tracking_uri(uri)
    return mlflow.pyfunc.load_model(f"runs:/{run_id}/model", **options)


def test_the_model_of_a_table_predicts_and_nothing_in_it_is_pickled(tmp_path: Path, database: str) -> None:
    started = trained_run(tmp_path / "run", *WINE)
    run_id = recorded(tmp_path / "run", database, started, model_megabytes=1)
    rows, classes = load_wine(return_X_y=True)
    predicted = loaded(database, run_id).predict(rows)
    trained = Predictor(started.config, tmp_path / "run" / "weights.safetensors")
    assert np.array_equal(predicted, trained.predict(rows))
    assert (predicted.argmax(-1) == classes).mean() > 0.8
    kept = Path(mlflow.artifacts.download_artifacts(f"runs:/{run_id}/model", dst_path=str(tmp_path / "kept")))
    assert [path for path in kept.rglob("*") if path.suffix in (".pkl", ".pickle", ".pt", ".bin")] == []
    assert {"weights.safetensors", "configuration.json", "MLmodel"} <= {path.name for path in kept.rglob("*")}
    assert mlflow.MlflowClient(database).get_run(run_id).data.tags["orchestrator.model"] == "of the last step"


@pytest.mark.slow
def test_a_language_model_continues_texts_as_it_is_asked_to(tmp_path: Path, database: str) -> None:
    sizes = ["task=language_model", "task.context=32", "model.width=32", "model.heads=2", "model.layers=1"]
    run_id = recorded(tmp_path, database, trained_run(tmp_path, *sizes), model_megabytes=100)
    (text,) = loaded(database, run_id, model_config={"options": {"max_new_tokens": 20}}).predict(["In the beginning"])
    assert len(text) == 20


def test_code_of_ones_own_is_not_run_unasked(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    own = ["task=own", "task._target_=own_task.Sine"]
    run_id = recorded(tmp_path, database, trained_run(tmp_path, *own, steps=300), model_megabytes=100)
    with pytest.raises(Exception, match=r"task\._target_=own_task\.Sine.*model_config=\{'trusted'"):
        loaded(database, run_id)
    model = loaded(database, run_id, model_config={"trusted": ["own_task.Sine"]})
    x = np.linspace(-3, 3, 50)[:, None]
    assert np.abs(model.predict(x) - np.sin(x)).max() < 0.3


def test_large_weights_are_not_copied_unasked(tmp_path: Path, database: str) -> None:
    started = trained_run(tmp_path, *WINE, steps=1)
    run_id = recorded(tmp_path, database, started, model_megabytes=0.001)
    client = mlflow.MlflowClient(database)
    assert "more than tracking.model_megabytes=0.001" in client.get_run(run_id).data.tags["orchestrator.model"]
    assert "model" not in {each.path for each in client.list_artifacts(run_id)}
    assert recorded(tmp_path, database, model_megabytes=0) == run_id
    assert "model" not in {each.path for each in client.list_artifacts(run_id)}


def test_a_model_that_cannot_be_written_does_not_hold_up_the_end(tmp_path: Path, database: str) -> None:
    started = trained_run(tmp_path, *WINE, steps=1)
    (tmp_path / "journal.jsonl").write_text("{}\n{}\n")
    run_id = recorded(tmp_path, database, started, model_megabytes=100)
    run = mlflow.MlflowClient(database).get_run(run_id)
    assert run.info.status == "FINISHED"
    assert "not kept" in run.data.tags["orchestrator.model"]


def test_a_small_model_takes_less_than_two_seconds_of_the_end(tmp_path: Path, database: str) -> None:
    from orchestrator.recorders.mlflow.model import save_model

    trained_run(tmp_path, *WINE, steps=1)
    save_model(tmp_path, tmp_path / "warm" / "model")  # what is loaded once is loaded while the run goes on
    begin = time.monotonic()
    save_model(tmp_path, tmp_path / "again" / "model")
    assert time.monotonic() - begin < 2


@pytest.mark.slow
@pytest.mark.parametrize("protected", [False, True])
def test_a_server_and_one_that_asks_for_a_password(tmp_path: Path, protected: bool) -> None:
    """Loaded in a process that knows nothing but the run's id and the server's address."""
    user = {"MLFLOW_TRACKING_USERNAME": "admin", "MLFLOW_TRACKING_PASSWORD": "a-long-password-of-ours"}
    secrets = {"MLFLOW_FLASK_SERVER_SECRET_KEY": "k" * 32, "MLFLOW_AUTH_ADMIN_PASSWORD": "a-long-password-of-ours"}
    started = trained_run(tmp_path / "run", *WINE)
    arguments, environment = (["--app-name", "basic-auth"], secrets) if protected else ([], {})
    with server(tmp_path, *arguments, **environment) as address, pytest.MonkeyPatch.context() as patch:
        if protected:
            refused = mlflow.MlflowClient(address)
            with pytest.raises(mlflow.MlflowException, match="401"):
                refused.search_experiments()
        for name, value in (user if protected else {}).items():
            patch.setenv(name, value)
        run_id = recorded(tmp_path / "run", address, started, model_megabytes=100)
        alone = {**os.environ, "MLFLOW_TRACKING_URI": address}
        subprocess.run([sys.executable, "-c", LOAD, run_id], check=True, cwd=tmp_path, env=alone)
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or b"a-long-password-of-ours" not in path.read_bytes()
