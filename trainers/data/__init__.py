"""Data sets in three splits, and whether they are whole."""
