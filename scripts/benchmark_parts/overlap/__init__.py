"""Parts of the benchmark of overlapping."""
