"""Models: transformers, networks for images and tables, published weights, adapters."""
