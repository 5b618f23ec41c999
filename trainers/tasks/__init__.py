"""What is learned: a model, data and a loss each."""
