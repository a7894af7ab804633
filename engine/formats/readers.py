"""The built-in formats, in the order they are asked, and those of plug-ins."""

from engine.core.registry import Registry
from engine.formats.ascend_text import AscendTextReader
from engine.formats.chrome import ChromeReader
from engine.formats.reader import Reader


def built_in_readers() -> Registry[Reader]:
    """Returns a fresh registry: Ascend's text captures first, any Chrome trace last."""
    return Registry[Reader]([AscendTextReader(), ChromeReader()], "cannscope.readers")
