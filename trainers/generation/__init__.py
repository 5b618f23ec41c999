"""Continuing texts: engine, paged key-value cache, scheduling, sampling."""
