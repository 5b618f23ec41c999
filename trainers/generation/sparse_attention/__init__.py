"""Ways to attend that read only a part of the keys."""
