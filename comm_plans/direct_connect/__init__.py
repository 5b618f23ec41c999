"""Which network to build from N nodes with d ports each, and how data moves over it.

Source: Zhao et al., "Efficient Direct-Connect Topologies for Collective Communications", arXiv 2202.03356.
"""
