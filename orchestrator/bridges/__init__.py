"""AutoLRS inside the training loops of PyTorch Lightning and Hugging Face, each an optional extra."""
