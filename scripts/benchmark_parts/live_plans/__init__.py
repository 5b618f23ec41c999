"""Parts of the benchmark of plans on live process groups."""
