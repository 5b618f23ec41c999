"""Parts of the benchmark of a launch that decides everything by itself."""
