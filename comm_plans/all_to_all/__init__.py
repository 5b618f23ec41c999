"""All-to-all: clusters of servers by FLASH, direct-connect networks by multicommodity flow.

Sources: Lei et al., "FLASH: Fast All-to-All Communication in GPU Clusters", arXiv 2505.09764; Basu et al., "Efficient
All-to-All Collective Communication Schedules for Direct-Connect Topologies", arXiv 2309.13541.
"""
