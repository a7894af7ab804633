"""The built-in formats, in the order they are asked, and those of plug-ins."""

from engine.core.registry import Registry
from engine.formats.ascend_text import AscendTextReader
from engine.formats.reader import Reader


def built_in_readers() -> Registry[Reader]:
    """Returns a fresh registry of the built-in formats and those of plug-ins."""
    return Registry[Reader]([AscendTextReader()], "cannscope.readers")
