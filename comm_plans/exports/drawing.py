"""The few SVG shapes that a picture of a plan needs."""

from __future__ import annotations

from xml.etree import ElementTree

FONT = "Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif"
INK, FAINT, PAPER, TIGHT = "#1f2733", "#8a94a3", "#ffffff", "#d6293e"
Point = tuple[float, float]


class Drawing:
    """An SVG image under construction; coordinates in pixels, y downwards. Sizes itself to `width` × `height`."""

    def __init__(self) -> None:
        self.root = ElementTree.Element("svg", xmlns="http://www.w3.org/2000/svg")

    def line(self, start: Point, end: Point, colour: str, width: float, hint: str = "") -> None:
        self._add("line", hint, x1=start[0], y1=start[1], x2=end[0], y2=end[1], stroke=colour, stroke_width=width)

    def curve(self, start: Point, control: Point, end: Point, colour: str, width: float, hint: str = "") -> None:
        (a, b, c), (d, e, f) = zip(*((_number(x), _number(y)) for x, y in (start, control, end)), strict=True)
        self._add("path", hint, d=f"M{a} {d}Q{b} {e} {c} {f}", stroke=colour, stroke_width=width, fill="none")

    def polygon(self, points: list[Point], fill: str) -> None:
        self._add("polygon", points=" ".join(f"{_number(x)},{_number(y)}" for x, y in points), fill=fill)

    def circle(self, centre: Point, radius: float, fill: str, stroke: str = "none", width: float = 1) -> None:
        self._add("circle", cx=centre[0], cy=centre[1], r=radius, fill=fill, stroke=stroke, stroke_width=width)

    def box(
        self, corner: Point, size: Point, fill: str, stroke: str = "none", *, round: float = 6, dash: str = "",
        width: float = 1,
    ) -> None:  # fmt: skip
        self._add("rect", x=corner[0], y=corner[1], width=size[0], height=size[1], rx=round, fill=fill, stroke=stroke,
                  stroke_dasharray=dash, stroke_width=width)  # fmt: skip

    def text(
        self, at: Point, words: str, size: float = 12, colour: str = INK, *, anchor: str = "start", bold: bool = False
    ) -> None:
        element = self._add("text", x=at[0], y=at[1], font_size=size, fill=colour, text_anchor=anchor,
                            font_weight="600" if bold else "")  # fmt: skip
        element.text = words

    def finished(self, width: float, height: float) -> str:
        """The image as text, on white paper."""
        self.root.set("viewBox", f"0 0 {_number(width)} {_number(height)}")
        self.root.set("width", _number(width))
        self.root.set("height", _number(height))
        self.root.set("font-family", FONT)
        paper = ElementTree.Element("rect", width="100%", height="100%", fill=PAPER)
        self.root.insert(0, paper)
        ElementTree.indent(self.root)
        return ElementTree.tostring(self.root, encoding="unicode") + "\n"

    def _add(self, tag: str, hint: str = "", **attributes: str | float) -> ElementTree.Element:
        written = {
            name.replace("_", "-"): value if isinstance(value, str) else _number(value)
            for name, value in attributes.items()
            if value != ""
        }
        element = ElementTree.SubElement(self.root, tag, written)
        if hint:
            ElementTree.SubElement(element, "title").text = hint
        return element


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def mixed(low: tuple[int, int, int], high: tuple[int, int, int], part: float) -> str:
    """The colour that lies `part` of the way from `low` to `high`."""
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in zip(low, high, strict=True))


def wheel(position: int, of: int) -> str:
    """One of `of` colours that are told apart easily, neighbours too."""
    return f"hsl({round(360 * position / of)}, 58%, {(40, 52)[position % 2]}%)"
