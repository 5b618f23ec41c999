"""Searches over many trainings: `orchestrate sweep`, Ray Tune trials, and populations."""
