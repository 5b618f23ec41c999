"""The network lab: hosts, switches and shaped links made of network namespaces, so that plans meet real TCP."""
