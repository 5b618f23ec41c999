"""A plan on a live torch process group."""
