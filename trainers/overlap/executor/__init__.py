"""Ways to run a plan: from the graph, the plan and a function an operation to when each began and ended."""
