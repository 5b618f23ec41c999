"""A training step as a pipeline: gradients are summed and parameters stepped bucket by bucket while others compute."""
