"""Writes a trace as the directory an Ascend profiler would have left: text files that the vendor's tools open."""

from engine.formats.ascend_writer.directory import directory_name, write_ascend_text

__all__ = ["directory_name", "write_ascend_text"]
