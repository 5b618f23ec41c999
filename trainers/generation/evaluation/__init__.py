"""Scores of language models at long context, and of ways to attend."""
