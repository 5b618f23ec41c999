"""Compute, memory and network of one device kept busy at once by a searched pipeline (NanoFlow, arXiv 2408.12757)."""
