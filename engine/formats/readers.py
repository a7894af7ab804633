"""The built-in formats, in the order they are asked, and those of plug-ins."""

from engine.core.registry import Registry
from engine.formats.ascend_text import AscendTextReader
from engine.formats.chrome import ChromeReader
from engine.formats.kineto import KinetoReader
from engine.formats.reader import Reader


def built_in_readers() -> Registry[Reader]:
    """Returns a fresh registry: Ascend's text captures, then Kineto, then any Chrome trace."""
    return Registry[Reader]([AscendTextReader(), KinetoReader(), ChromeReader()], "cannscope.readers")
