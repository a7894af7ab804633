"""Small building blocks of inline SVG: every value is escaped, colours come from the page's style."""

from collections.abc import Iterable, Sequence

from engine.report.escaping import html_text


def element(name: str, content: str = "", **attributes: object) -> str:
    """Returns one element; ``content`` is markup, attribute values are escaped, ``class_`` stands for ``class``."""
    parts = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html_text(str(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{parts}>{content}</{name}>"


def label(text: str, x: float, y: float, anchor: str = "start", kind: str = "ink") -> str:
    """Returns text at a place; ``kind`` is a class of the page's style."""
    return element("text", html_text(text), x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=kind)


def rectangle(x: float, y: float, width: float, height: float, kind: str, tip: str = "") -> str:
    """Returns a rectangle with a tooltip."""
    title = element("title", html_text(tip)) if tip else ""
    return element(
        "rect", title, x=f"{x:.2f}", y=f"{y:.2f}", width=f"{max(width, 0.0):.2f}", height=f"{height:.2f}", class_=kind
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Returns a line."""
    return element("line", x1=f"{x1:.2f}", y1=f"{y1:.2f}", x2=f"{x2:.2f}", y2=f"{y2:.2f}", class_=kind)


def polyline(points: Sequence[tuple[float, float]], kind: str) -> str:
    """Returns an open line through points."""
    return element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), class_=kind)


def picture(parts: Iterable[str], width: float, height: float, title: str) -> str:
    """Returns the whole picture, scaled to the page's width; ``title`` is what screen readers say."""
    return element(
        "svg",
        element("title", html_text(title)) + "".join(parts),
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        xmlns="http://www.w3.org/2000/svg",
    )


def nice_ticks(highest: float, count: int = 5) -> list[float]:
    """Returns round numbers from 0 to about ``highest``: multiples of 1, 2 or 5 times a power of ten."""
    if highest <= 0:
        return [0.0]
    raw = highest / count
    power = 10.0 ** len(str(int(raw))) / 10 if raw >= 1 else 1.0
    while raw / power < 1:
        power /= 10
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    return [step * place for place in range(int(highest / step + 1e-9) + 1)]
