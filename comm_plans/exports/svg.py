"""A picture of a verified plan: its network with the load of every link, the cut that limits it, and its trees.

A link's colour is the part of the transfer in which it is busy, its width the data it carries. Up to 32 ranks the
largest tree of every root is drawn below, in the colour that the root has in the network; larger plans show load only.
"""

from __future__ import annotations

from comm_plans.exports.drawing import FAINT, TIGHT, Drawing, mixed
from comm_plans.exports.layout import laid_out
from comm_plans.exports.network_picture import BUSY, IDLE, WIDEST, NetworkPicture
from comm_plans.exports.tree_pictures import draw_trees, spreads
from comm_plans.plan import Plan
from comm_plans.verifier import verify

MARGIN, HEADER = 36.0, 96.0
READABLE = 32  # ranks up to which links are labelled and trees drawn
NARROWEST_PAGE = 1080.0


def svg(plan: Plan) -> str:
    """The SVG text. Raises PlanError if the plan fails verification."""
    verify(plan.to_document())
    ranks = len(plan.topology.ranks)
    readable = ranks <= READABLE
    layout = laid_out(plan.topology, 64.0 if readable else max(5.0, 1600 / ranks), 112.0)
    width = max(NARROWEST_PAGE, layout.width + 2 * MARGIN)
    picture = NetworkPicture(Drawing(), plan, layout, ((width - layout.width) / 2, HEADER + 24), readable)
    picture.draw()
    drawing, bottom = picture.drawing, HEADER + 24 + layout.height + 36
    _draw_header(drawing, plan, width)
    if readable:
        words = "How each rank's data spreads" if spreads(plan) else "How each rank's sum comes together"
        words += ": its largest tree, and the part of the whole buffer that it carries"
        drawing.text((MARGIN, bottom + 8), words, 14, bold=True)
        bottom += 28 + draw_trees(drawing, plan, picture.colours, (MARGIN, bottom + 28), width - 2 * MARGIN)
    return drawing.finished(width, bottom + 12)


def _draw_header(drawing: Drawing, plan: Plan, width: float) -> None:
    drawing.text((MARGIN, 40), f"{plan.collective} on {plan.topology.name}", 21, bold=True)
    exact = "" if plan.algbw.denominator == 1 else f" ({plan.algbw})"
    bound = "the network's optimum" if plan.optimal else f"optimum {float(plan.optimum):.2f}"
    drawing.text((MARGIN, 62), f"{float(plan.algbw):.2f} GB/s{exact}, {bound}", 13.5)
    trees = (
        "" if plan.trees_per_rank is None else f"{plan.trees_per_rank} tree{'s' * (plan.trees_per_rank > 1)} a rank · "
    )
    drawing.text((MARGIN, 81), f"{trees}{plan.depth} hops deep · {plan.method}", 11.5, FAINT)
    _draw_legend(drawing, width - MARGIN - 430, bool(plan.bottleneck))


def _draw_legend(drawing: Drawing, left: float, cut: bool) -> None:
    for step in range(60):
        drawing.box((left + 2 * step, 34), (2.4, 10), mixed(IDLE, BUSY, step / 59), round=0)
    drawing.text((left, 28), "link busy, % of the time", 10.5, FAINT)
    drawing.text((left, 56), "0", 9.5, FAINT)
    drawing.text((left + 120, 56), "100", 9.5, FAINT, anchor="end")
    for step, width in enumerate((1.0, 4.0, WIDEST)):
        drawing.line((left + 150 + 30 * step, 39), (left + 174 + 30 * step, 39), mixed(IDLE, BUSY, 0.6), width)
    drawing.text((left + 150, 28), "data carried", 10.5, FAINT)
    if cut:
        drawing.box((left + 270, 33), (16, 12), "none", TIGHT, round=3, dash="4 3", width=1.6)
        drawing.text((left + 292, 43), "one side of the tight cut", 10.5)
        drawing.line((left + 270, 58), (left + 286, 58), TIGHT, 6)
        drawing.line((left + 270, 58), (left + 286, 58), mixed(IDLE, BUSY, 1), 3)
        drawing.text((left + 292, 62), "its links: they limit the plan", 10.5)
