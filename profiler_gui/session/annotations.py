"""What the user puts on the timeline: marks and pinned tracks, as one undoable value."""

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Mark:
    """A named moment, or a named stretch.

    Attributes:
        id: Unique among the marks of the document.
        start_ns: Trace time.
        end_ns: Equal to ``start_ns`` for a moment.
        label: What it is called.
    """

    id: int
    start_ns: int
    end_ns: int
    label: str


@dataclass(frozen=True, slots=True)
class Annotations:
    """Marks by id and pinned tracks as (rank, track) in the order they were pinned."""

    marks: tuple[Mark, ...] = ()
    pins: tuple[tuple[int, int], ...] = ()

    def with_mark(self, start_ns: int, end_ns: int, label: str = "") -> "Annotations":
        """Returns the annotations with one more mark, called by its number where no label is given."""
        number = max((mark.id for mark in self.marks), default=0) + 1
        return replace(self, marks=(*self.marks, Mark(number, start_ns, end_ns, label or str(number))))

    def without_mark(self, mark_id: int) -> "Annotations":
        """Returns the annotations without one mark."""
        return replace(self, marks=tuple(mark for mark in self.marks if mark.id != mark_id))

    def with_renamed_mark(self, mark_id: int, label: str) -> "Annotations":
        """Returns the annotations with a mark called ``label``."""
        marks = tuple(replace(mark, label=label) if mark.id == mark_id else mark for mark in self.marks)
        return replace(self, marks=marks)

    def with_pin_toggled(self, rank: int, track: int) -> "Annotations":
        """Returns the annotations with the track pinned, or no longer pinned."""
        pin = (rank, track)
        if pin in self.pins:
            return replace(self, pins=tuple(item for item in self.pins if item != pin))
        return replace(self, pins=(*self.pins, pin))

    def within(self, track_counts: Mapping[int, int]) -> "Annotations":
        """Returns the annotations without pins of tracks that are not there.

        Args:
            track_counts: Rank → number of its tracks. Memory curves have negative indices and are always kept.
        """
        pins = tuple((rank, track) for rank, track in self.pins if track < track_counts.get(rank, -(1 << 62)))
        return replace(self, pins=pins)


def annotations_text(annotations: Annotations) -> str:
    """Returns marks and pins as text; "" where there are none."""
    import msgspec  # after the first paint

    return "" if annotations == Annotations() else msgspec.json.encode(annotations).decode()


def annotations_of(text: str) -> Annotations:
    """Returns marks and pins from a text; none where the text is none of ours."""
    import msgspec  # after the first paint

    try:
        return msgspec.json.decode(text, type=Annotations)
    except (msgspec.DecodeError, UnicodeError):
        return Annotations()
