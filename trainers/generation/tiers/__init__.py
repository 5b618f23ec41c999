"""Where keys and values wait that the cache has no room for: host memory, disk."""
