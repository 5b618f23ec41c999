"""All-to-all on networks whose ranks are joined directly, or by switches that forward: flows, routes, timed steps."""

from comm_plans.all_to_all.direct.solve import DirectResult, direct_all_to_all, load

__all__ = ["DirectResult", "direct_all_to_all", "load"]
