"""Programs over TCP streams of their own: one for each edge of each tree, paced to the rate that the plan gives it."""

from comm_plans.runtime.streams.transport import StreamTransport

__all__ = ["StreamTransport"]
