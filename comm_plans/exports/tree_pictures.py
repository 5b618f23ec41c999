"""Small pictures of single trees: the root on top, a row a hop, in the root's colour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from comm_plans.exports.drawing import FAINT, INK, PAPER, Drawing, Point
from comm_plans.plan import Plan, Tree

RADIUS = 8.5
HEAD = 34  # height of a picture's caption
ROW = 27
GAP = 18  # between pictures


def spreads(plan: Plan) -> bool:
    """Whether the pictures show broadcast trees: all plans have some but those that only reduce."""
    return any(tree.operation == "broadcast" for tree in plan.trees)


def largest_trees(plan: Plan) -> dict[int, Tree]:
    """For each root the tree that carries most; of an all_reduce the trees on the way down."""
    operation = "broadcast" if spreads(plan) else "reduce"
    chosen: dict[int, Tree] = {}
    for tree in plan.trees:
        if tree.operation == operation and tree.share > chosen.get(tree.root, _NOTHING).share:
            chosen[tree.root] = tree
    return dict(sorted(chosen.items()))


_NOTHING = Tree("broadcast", -1, Fraction(0), Fraction(0), ())


def draw_trees(drawing: Drawing, plan: Plan, colours: Mapping[int, str], corner: Point, width: float) -> float:
    """Draw the largest tree of every root in a grid from `corner` on; returns the height that was needed."""
    trees = list(largest_trees(plan).values())
    widest = max(len(_leaves(_children(tree), tree.root)) for tree in trees)
    columns = next((count for count in (8, 6) if width / count > GAP + 14 * widest), 4)
    top, cell = corner[1], width / columns
    for first in range(0, len(trees), columns):
        line = trees[first : first + columns]
        for column, tree in enumerate(line):
            _draw_tree(drawing, plan, tree, colours[tree.root], (corner[0] + column * cell, top), cell - GAP)
        top += HEAD + ROW * max(max(_depths(tree).values()) for tree in line) + 30
    return top - corner[1]


def _draw_tree(drawing: Drawing, plan: Plan, tree: Tree, colour: str, corner: Point, width: float) -> None:
    spots, radius = _spots(tree, corner, width)
    siblings = sum(other.root == tree.root and other.operation == tree.operation for other in plan.trees)
    names = plan.topology.nodes
    drawing.text((corner[0], corner[1] + 10), names[tree.root], 12, colour, bold=True)
    count = "" if siblings == 1 else f" · one of {siblings}"
    drawing.text((corner[0], corner[1] + 23), f"{tree.share}{count}", 9.5, FAINT)
    for parent, child in _edges(tree):
        drawing.line(spots[parent], spots[child], colour, 1.6, hint=f"{names[parent]} – {names[child]}")
    for node, at in spots.items():
        root = node == tree.root
        drawing.circle(at, radius, colour if root else PAPER, colour, 1.4)
        label = str(node) if node < len(plan.topology.ranks) else names[node][:3]
        drawing.text((at[0], at[1] + 0.35 * radius), label, radius, PAPER if root else INK, anchor="middle", bold=root)


def _spots(tree: Tree, corner: Point, width: float) -> tuple[dict[int, Point], float]:
    """Leaves side by side in the order of a walk, parents above the middle of their children; and the symbols' size."""
    children, depths = _children(tree), _depths(tree)
    order = _leaves(children, tree.root)
    step = min(2 * RADIUS + 5, (width - 2 * RADIUS) / max(len(order) - 1, 1))
    across = {leaf: position * step for position, leaf in enumerate(order)}
    for node in sorted(depths, key=lambda each: -depths[each]):
        if below := children.get(node):
            across[node] = (across[below[0]] + across[below[-1]]) / 2
    left, top = corner[0] + RADIUS, corner[1] + HEAD + RADIUS
    return {node: (left + across[node], top + ROW * depth) for node, depth in depths.items()}, min(RADIUS, step / 2 - 1)


def _edges(tree: Tree) -> list[tuple[int, int]]:
    """(parent, child) pairs, parents first."""
    if tree.operation == "broadcast":
        return [(path[0], path[-1]) for path in tree.paths]
    return [(path[-1], path[0]) for path in reversed(tree.paths)]


def _children(tree: Tree) -> dict[int, list[int]]:
    children: defaultdict[int, list[int]] = defaultdict(list)
    for parent, child in _edges(tree):
        children[parent].append(child)
    return dict(children)


def _depths(tree: Tree) -> dict[int, int]:
    depths = {tree.root: 0}
    for parent, child in _edges(tree):
        depths[child] = depths[parent] + 1
    return depths


def _leaves(children: Mapping[int, Sequence[int]], node: int) -> list[int]:
    found, stack = [], [node]
    while stack:
        node = stack.pop()
        below = children.get(node, ())
        stack.extend(reversed(below))
        if not below:
            found.append(node)
    return found
