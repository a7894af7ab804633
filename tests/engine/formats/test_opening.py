"""Opening, with a format that takes milliseconds: what is found, what the cache keeps, how failures read."""

import os
import time
from dataclasses import dataclass, field

import pytest

from engine.core.errors import (
    OperationCancelled,
    PluginError,
    TraceReadError,
    TraceSyntaxError,
    UnknownTraceFormatError,
)
from engine.core.progress import CancelToken
from engine.core.registry import Registry
from engine.formats import Capture, TraceCache, open_job
from engine.formats.cache import STALE_AFTER_S
from tests.support.trace_text import text_from_trace, trace_from_text


@dataclass
class PictureReader:
    """Reads pictures; counts how often."""

    id: str = "picture"
    title: str = "picture of a trace"
    reads: list = field(default_factory=list)

    def find(self, path):
        files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
        return tuple(Capture(file, {"trace": file}) for file in files if file.read_bytes()[:3] in (b"gpu", b"bad"))

    def read(self, capture, context):
        self.reads.append(capture.root.name)
        text = capture.root.read_text()
        if text.startswith("bad"):
            raise TraceSyntaxError("the picture is torn")
        return trace_from_text(text)

    def argument_decoder(self, source):
        return lambda offset: {"offset": offset}


@pytest.fixture
def reader():
    return PictureReader()


@pytest.fixture
def readers(reader):
    return Registry([reader])


def test_a_second_opening_comes_from_the_cache_until_the_file_changes(tmp_path, reader, readers):
    path = tmp_path / "a.txt"
    path.write_text("gpu 7 | AA..BB |")
    cache = TraceCache(tmp_path / "cache")
    first, second = (open_job([path], readers, cache=cache) for _ in range(2))
    assert reader.reads == ["a.txt"]
    assert text_from_trace(second.ranks[0].trace) == text_from_trace(first.ranks[0].trace)
    assert second.ranks[0].trace.argument_decoder is not None
    path.write_text("gpu 7 | AAAABB |")
    os.utime(path, ns=(1, 1))
    assert "AAAA" in text_from_trace(open_job([path], readers, cache=cache).ranks[0].trace)


def test_a_damaged_cache_entry_is_read_again(tmp_path, reader, readers):
    path = tmp_path / "a.txt"
    path.write_text("gpu 7 | AA |")
    cache = TraceCache(tmp_path / "cache")
    open_job([path], readers, cache=cache)
    (entry,) = (tmp_path / "cache").iterdir()
    (entry / "events.start_ns.npy").write_bytes(b"")
    open_job([path], readers, cache=cache)
    assert reader.reads == ["a.txt", "a.txt"]


def test_a_cache_that_cannot_be_written_costs_only_speed(tmp_path, reader, readers):
    path = tmp_path / "a.txt"
    path.write_text("gpu 7 | AA |")
    (tmp_path / "cache").write_text("a file where the directory should be")
    assert len(open_job([path], readers, cache=TraceCache(tmp_path / "cache")).ranks) == 1


def test_the_cache_forgets_the_oldest_beyond_its_limit(tmp_path, reader, readers):
    cache = TraceCache(tmp_path / "cache", limit_bytes=1)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("gpu 7 | AA |")
        open_job([tmp_path / name], readers, cache=cache)
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_one_broken_rank_is_a_diagnostic_and_all_broken_raise(tmp_path, readers):
    (tmp_path / "a.txt").write_text("gpu 7 | AA |")
    (tmp_path / "b.txt").write_text("bad")
    job = open_job([tmp_path], readers)
    assert len(job.ranks) == 1
    assert [(item.code, item.count) for item in job.diagnostics] == [("unreadable-capture", 1)]
    with pytest.raises(TraceSyntaxError, match="torn"):
        open_job([tmp_path / "b.txt"], readers)


@pytest.mark.parametrize(
    ("content", "message"), [(b"", r"empty \(0 bytes\)"), (b"\x7fELF", "no trace; open one of: picture of a trace")]
)
def test_a_foreign_file_is_one_clear_line(tmp_path, readers, content, message):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(UnknownTraceFormatError, match=message) as caught:
        open_job([path], readers)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_path_says_so(tmp_path, readers):
    with pytest.raises(TraceReadError, match="no such file"):
        open_job([tmp_path / "missing"], readers)


def test_cancelling_stops_before_the_next_capture(tmp_path, readers):
    (tmp_path / "a.txt").write_text("gpu 7 | AA |")
    with pytest.raises(OperationCancelled):
        open_job([tmp_path], readers, cancel=CancelToken(lambda: True))


def test_two_readers_with_one_id_are_refused(reader):
    with pytest.raises(PluginError, match="registered twice"):
        Registry([reader, reader])


def test_what_a_killed_process_left_unfinished_is_removed_from_the_cache_in_time(tmp_path, readers):
    path = tmp_path / "a.txt"
    path.write_text("gpu 7 | AA |")
    fresh, stale = tmp_path / "cache" / ".writing-fresh", tmp_path / "cache" / ".writing-stale"
    for left in (fresh, stale):
        left.mkdir(parents=True)
        (left / "columns.npy").write_bytes(b"half")
    long_ago_s = time.time() - 2 * STALE_AFTER_S
    os.utime(stale, (long_ago_s, long_ago_s))
    open_job([path], readers, cache=TraceCache(tmp_path / "cache", limit_bytes=1))
    assert fresh.exists()
    assert not stale.exists()
