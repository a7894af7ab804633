"""Traces drawn as text, so that a fixture is a picture and a failure shows one.

    gpu 7   | AAAA..BB |
    host 1  | LL.L...  |

One character is one µs. A run of one letter is a slice named by ``names`` (or the letter itself); ``.`` and blanks are
gaps; ``|`` ends the picture. A run of capitals ``A`` followed by ``a`` starts a new slice of the same name. Further
lines with the same head are rows under it (nested slices).
"""

from collections.abc import Mapping

import numpy as np

from engine.trace import Origin, Source, Trace, TraceBuilder, TraceMetadata, Track, TrackKind

US = 1_000
_KINDS = {
    "gpu": (TrackKind.DEVICE_STREAM, "kernel"),
    "npu": (TrackKind.DEVICE_STREAM, "AI_CORE"),
    "host": (TrackKind.HOST_THREAD, "cpu_op"),
    "comm": (TrackKind.COMMUNICATION_GROUP, ""),
    "plane": (TrackKind.COMMUNICATION_PLANE, ""),
}


def trace_from_text(
    picture: str,
    names: Mapping[str, str] | None = None,
    categories: Mapping[str, str] | None = None,
    *,
    epoch_ns: int = 10**18,
    rank: int | None = None,
) -> Trace:
    """Returns the trace drawn in ``picture``; ``names`` and ``categories`` translate letters."""
    builder = TraceBuilder()
    tracks: dict[str, int] = {}
    for line in picture.splitlines():
        head, separator, body = line.partition("|")
        if not separator:
            continue
        label = " ".join(head.split())
        kind_word, _, number = label.partition(" ")
        kind, category = _KINDS[kind_word]
        if label not in tracks:
            stream = int(number) if kind is TrackKind.DEVICE_STREAM and number.isdigit() else -1
            device = -1 if kind is TrackKind.HOST_THREAD else 0
            group = number if kind in (TrackKind.COMMUNICATION_GROUP, TrackKind.COMMUNICATION_PLANE) else ""
            tracks[label] = builder.add_track(Track(kind, label, stream=stream, device=device, group=group))
        for letter, start, length in _runs(body.partition("|")[0]):
            builder.add_events(
                start_ns=np.array([epoch_ns + start * US]),
                duration_ns=np.array([length * US]),
                track=tracks[label],
                name=builder.strings.intern((names or {}).get(letter, letter)),
                category=builder.strings.intern((categories or {}).get(letter, category)),
            )
    return builder.build(
        origin=Origin.MEASURED,
        source=Source("picture", "text"),
        metadata=TraceMetadata(rank=rank),
        clock_is_unix=True,
    )


def text_from_trace(trace: Trace) -> str:
    """Returns the inverse picture, one line per track and depth, letters being first letters of names."""
    width = -(-trace.time_range.end_ns // US)
    lines = []
    for index, track in enumerate(trace.tracks):
        part = trace.track_slices[index]
        rows: dict[int, list[str]] = {}
        for event in range(part.start, part.stop):
            row = rows.setdefault(int(trace.events.depth[event]), ["."] * width)
            start = int(trace.events.start_ns[event]) // US
            end = int(trace.events.end_ns[event]) // US
            row[start:end] = trace.name(event)[0] * (end - start)
        lines += [f"{track.name} | {''.join(row)} |" for _, row in sorted(rows.items())]
    return "\n".join(lines)


def _runs(body: str) -> list[tuple[str, int, int]]:
    runs = []
    start = 0
    while start < len(body):
        letter = body[start]
        end = start + 1
        while end < len(body) and body[end] == letter:
            end += 1
        if letter not in ". ":
            runs.append((letter.upper() if letter.islower() and letter.upper() in body else letter, start, end - start))
        start = end
    # The picture's leading blank after "|" is not time.
    lead = 1 if body.startswith(" ") else 0
    return [(letter, start - lead, length) for letter, start, length in runs]
