"""The built-in formats, in the order they are asked, and those of plug-ins."""

from engine.core.registry import Registry
from engine.formats.ascend.reader import AscendTextReader
from engine.formats.chrome.reader import ChromeReader
from engine.formats.kineto.reader import KinetoReader
from engine.formats.reader import Reader


def built_in_readers() -> Registry[Reader]:
    """Returns a fresh registry: Ascend's text captures, then Kineto, then any Chrome trace."""
    return Registry[Reader]([AscendTextReader(), KinetoReader(), ChromeReader()], "cannscope.readers")
