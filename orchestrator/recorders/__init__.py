"""Listeners to a run's events: journal, terminal, report, MLflow, Ray's metrics."""
