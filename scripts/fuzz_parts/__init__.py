"""Parts of the fuzzer: how inputs are changed, who reads them, and what a reader must never do."""
