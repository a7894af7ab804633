"""The timeline's own settings; the shared ones are in ``toolkit.preferences``."""

from typing import Any

from profiler_gui.toolkit.settings import SettingDescriptor

LANE_HEIGHT_PX = SettingDescriptor(
    "timeline/lane_height_px",
    18,
    "Height of nested slices (px)",
    "Of one row of slices inside a track.",
    minimum=6,
    maximum=48,
)
TIMELINE_SETTINGS: tuple[SettingDescriptor[Any], ...] = (LANE_HEIGHT_PX,)
