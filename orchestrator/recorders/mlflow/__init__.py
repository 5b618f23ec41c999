"""MLflow as a listener that can neither end nor stall a training: everything goes to a file first, then to MLflow."""

from orchestrator.recorders.mlflow.recorder import MlflowRecorder

__all__ = ["MlflowRecorder"]
