"""The model of a finished run as MLflow keeps models: its weights, its configuration, and code that reads both."""

import json
from importlib.metadata import version
from pathlib import Path

from orchestrator.events import RunStarted
from orchestrator.journal_file import JOURNAL, read_journal
from orchestrator.recorders.mlflow.spool import Operation
from orchestrator.recorders.secrets import mask_all
from orchestrator.run_folder import WEIGHTS

MODEL = "model"
"""Its name among a run's artifacts: `runs:/RUN_ID/model`."""

_CODE = Path(__file__).with_name("served.py")


def model_operation(folder: Path, megabytes: float) -> list[Operation]:
    """What sends the model of a finished run along, or says that its weights take more than `megabytes`."""
    weights = folder / WEIGHTS
    if not megabytes or not weights.is_file():
        return []
    size = weights.stat().st_size / 1e6
    if size > megabytes:
        said = f"not kept: its weights take {size:.0f} MB, more than tracking.model_megabytes={megabytes:g}"
        return [{"op": "tags", "values": {"model": said}}]
    return [{"op": "model"}]


def save_model(folder: Path, place: Path) -> None:
    """Write the MLflow model of the run in `folder` to the new folder `place`. Nothing in it is pickled."""
    from mlflow import pyfunc

    (started,) = [event for event in read_journal(folder / JOURNAL) if isinstance(event, RunStarted)]
    place.parent.mkdir(parents=True, exist_ok=True)
    configuration = place.with_name("configuration.json")
    configuration.write_text(json.dumps(mask_all(started.config), indent=2))
    pyfunc.save_model(
        str(place),
        python_model=str(_CODE),
        artifacts={"configuration": str(configuration), "weights": str((folder / WEIGHTS).absolute())},
        pip_requirements=[f"training-orchestrator=={version('training-orchestrator')}"],
        model_config={"trusted": [], "options": {}},
    )
