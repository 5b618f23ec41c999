"""The code in every MLflow model of ours: `mlflow.pyfunc.load_model` runs it and asks what it sets for predictions."""

import json
from pathlib import Path
from typing import Any

from mlflow.models import set_model
from mlflow.pyfunc import PythonModel
from pandas import DataFrame  # type: ignore[import-untyped]

from orchestrator.prediction import Predictor


class TrainedModel(PythonModel):  # type: ignore[misc]
    """Loaded with `model_config={"options": {…}}`, passes these to the task's `predict`; `"trusted"`: see Predictor."""

    def load_context(self, context: Any) -> None:
        """Rebuild the model from the artifacts."""
        configuration = json.loads(Path(context.artifacts["configuration"]).read_text())
        self._predictor = Predictor(
            configuration, Path(context.artifacts["weights"]), context.model_config.get("trusted", [])
        )
        self._options = context.model_config.get("options", {})

    def predict(self, context: Any, model_input: DataFrame, params: dict[str, Any] | None = None) -> Any:
        """What the task says of the inputs; tables, arrays and lists all come here as they are."""
        return self._predictor.predict(model_input, **self._options)


set_model(TrainedModel())
