"""The linear program of a flow problem, solved by HiGHS on one thread.

Columns are the flow of each source on each arc (one commodity a source, not one a pair: by the flow decomposition
theorem the optimum is the same and the program N times smaller; arXiv 2309.13541 calls it the master) and the duration
of each step. Small programs go through the simplex method, whose vertices have small denominators, middling ones
through interior points. Large ones try a first-order method, which on regular networks is much faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csc_matrix

from comm_plans.all_to_all.direct.flow_problem import FREE, Floats, FlowProblem
from comm_plans.all_to_all.direct.lower_bound import bound_by
from comm_plans.errors import PlansError

# Columns up to which each is the fastest here; crossover turns what interior points find into a vertex.
SIMPLEX, CROSSOVER, INTERIOR = 6_500, 40_000, 100_000
FIRST_ORDER = {"pdlp_optimality_tolerance": 1e-6, "time_limit": 15.0}  # seconds after which interior points take over
PATIENCE = 600.0  # seconds
MOST_UNKNOWNS = 400_000
OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}


@dataclass(frozen=True, eq=False)
class Flows:
    """A solution near the optimum: `flow` in units, S × A, and a price for each of the R resources."""

    flow: Floats
    price: Floats


def solve_flows(problem: FlowProblem) -> Flows:
    """Solve. Raises PlansError for a program that is too large, and where no solver ends with an optimum."""
    unknowns = int(problem.usable.sum())
    if unknowns > MOST_UNKNOWNS:
        raise PlansError(
            f"the flows of this network have {unknowns} unknowns where {MOST_UNKNOWNS} can be solved; take a smaller "
            "one, or number its ranks row by row or box by box if it repeats itself"
        )
    matrix, lower, upper = _program(problem)
    for solver, options in _methods(matrix.shape[1]):
        highs = _run(matrix, lower, upper, _costs(problem, matrix.shape[1]), {"solver": solver, **options})
        if _settled(highs.getInfo()):
            return _solution(problem, highs.getSolution())
    raise PlansError("no solver found the best flows of this network; make it smaller or its bandwidths more alike")


def _settled(info: Any) -> bool:
    """Whether the solver is near enough, whatever its own verdict; how near is worked out exactly later."""
    return bool(info.primal_dual_objective_error < 5e-6 and info.max_primal_infeasibility < 1e-4)


def _methods(columns: int) -> list[tuple[str, dict[str, Any]]]:
    """Solvers to try, one after the other."""
    interior = ("ipm", {"run_crossover": "on" if columns <= CROSSOVER else "off", "time_limit": PATIENCE})
    if columns <= SIMPLEX:
        return [("simplex", {}), interior]
    return [interior] if columns <= INTERIOR else [("hipdlp", FIRST_ORDER), interior]


def _program(problem: FlowProblem) -> tuple[csc_matrix, Floats, Floats]:
    """Matrix and row bounds. Columns: durations, then each arc that a source may use, source by source.

    Rows: for each source and each other node inflow − outflow = demand; for each resource load − capacity · duration ≤
    0. Demands are relative to the largest one, capacities such that durations are about 1.
    """
    sources, steps, resources = len(problem.sources), _steps(problem), len(problem.capacity)
    owner, arc = np.nonzero(problem.usable)
    columns = steps + np.arange(len(arc))
    balance = sources * problem.nodes
    drawn = problem.resource[arc] != FREE
    capacity = _scaled_capacity(problem)
    entries = [
        (owner * problem.nodes + problem.heads[arc], columns, np.ones(len(arc))),
        (owner * problem.nodes + problem.tails[arc], columns, -np.ones(len(arc))),
        (balance + problem.resource[arc][drawn], columns[drawn], np.full(drawn.sum(), float(problem.weight))),
        (balance + np.arange(resources), problem.step, -capacity),
    ]
    rows, places, values = (np.concatenate(part) for part in zip(*entries, strict=True))
    matrix = csc_matrix((values, (rows, places)), shape=(balance + resources, steps + len(arc)))
    wanted = problem.demand / problem.demand.max()
    lower = np.concatenate([wanted.ravel(), np.full(resources, -np.inf)])
    upper = np.concatenate([wanted.ravel(), np.zeros(resources)])
    itself = np.arange(sources) * problem.nodes + problem.sources
    lower[itself], upper[itself] = -np.inf, np.inf
    return matrix, lower, upper


def _steps(problem: FlowProblem) -> int:
    return int(problem.step.max()) + 1


def _scaled_capacity(problem: FlowProblem) -> Floats:
    """Capacities for durations that begin at 1; what then holds all demands at once never limits and may be less."""
    capacity = np.array([float(each) for each in problem.capacity])
    slowness = np.rint(capacity.max() / capacity).astype(np.int64)
    most = int(problem.demand.max())
    shortest = float(bound_by(problem, slowness)) / most
    everything = problem.weight * problem.nodes * float(problem.demand.sum(dtype=object)) / most
    return np.minimum(capacity * shortest, everything)


def _costs(problem: FlowProblem, columns: int) -> Floats:
    return (np.arange(columns) < _steps(problem)).astype(float)


def _run(matrix: csc_matrix, lower: Floats, upper: Floats, costs: Floats, options: dict[str, Any]) -> Any:
    from highspy._core import HighsLp, MatrixFormat, _Highs  # slow to import; the public class prints a banner

    program = HighsLp()
    program.num_row_, program.num_col_ = matrix.shape
    program.col_cost_, program.col_lower_ = costs, np.zeros(len(costs))
    program.col_upper_ = np.full(len(costs), np.inf)
    program.row_lower_, program.row_upper_ = lower, upper
    program.a_matrix_.format_ = MatrixFormat.kColwise
    program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
    program.a_matrix_.value_ = matrix.data
    highs = _Highs()
    for option, value in {**OPTIONS, **options}.items():
        highs.setOptionValue(option, value)
    highs.passModel(program)
    highs.run()
    return highs


def _solution(problem: FlowProblem, solution: Any) -> Flows:
    """Flows in units of demand; negative noise is cut off."""
    flow = np.zeros(problem.usable.shape)
    flow[problem.usable] = np.array(solution.col_value)[_steps(problem) :]
    price = -np.array(solution.row_dual)[-len(problem.capacity) :]
    return Flows(np.maximum(flow, 0) * problem.demand.max(), np.maximum(price, 0))
