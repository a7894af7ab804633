"""The stretch of time the window shows."""

from dataclasses import dataclass

MIN_WIDTH_NS = 1


@dataclass(frozen=True, slots=True)
class Viewport:
    """A half-open range of the trace time of the rank in view; at least 1 ns wide."""

    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        """The width."""
        return self.end_ns - self.start_ns


def clamped(viewport: Viewport, limits: Viewport) -> Viewport:
    """Returns ``viewport`` moved, and shrunk where it is wider, to lie inside ``limits``."""
    width_ns = min(max(viewport.duration_ns, MIN_WIDTH_NS), max(limits.duration_ns, MIN_WIDTH_NS))
    start_ns = min(max(viewport.start_ns, limits.start_ns), max(limits.end_ns - width_ns, limits.start_ns))
    return Viewport(start_ns, start_ns + width_ns)


def zoomed(viewport: Viewport, anchor_ns: int, factor: float) -> Viewport:
    """Returns ``viewport`` with its width times ``factor``, ``anchor_ns`` staying where it is on the screen.

    Worked out in integers relative to the viewport, so the anchor stays exact at any zoom.
    """
    width_ns = viewport.duration_ns
    new_width_ns = max(MIN_WIDTH_NS, round(width_ns * factor))
    if new_width_ns == width_ns and factor > 1:
        new_width_ns += 1
    share = (anchor_ns - viewport.start_ns) / width_ns
    start_ns = anchor_ns - round(new_width_ns * share)
    return Viewport(start_ns, start_ns + new_width_ns)


def panned(viewport: Viewport, distance_ns: int) -> Viewport:
    """Returns ``viewport`` moved later by ``distance_ns``."""
    return Viewport(viewport.start_ns + distance_ns, viewport.end_ns + distance_ns)


def around(start_ns: int, end_ns: int, margin_ratio: float = 0.1) -> Viewport:
    """Returns the viewport that shows a range with ``margin_ratio`` of its length on either side."""
    margin_ns = max(1, round((end_ns - start_ns) * margin_ratio))
    return Viewport(start_ns - margin_ns, end_ns + margin_ns)
