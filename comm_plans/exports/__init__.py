"""Plans for others: MSCCL XML and pictures."""
