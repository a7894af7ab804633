"""Files to traces: one file per format, none imports another's reader; detection by content."""

from engine.formats.cache import TraceCache
from engine.formats.opening import open_job
from engine.formats.reader import Capture, ReadContext, Reader

__all__ = ["Capture", "ReadContext", "Reader", "TraceCache", "open_job"]
