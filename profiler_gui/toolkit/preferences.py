"""The settings that several parts of the window share. Settings of one pane stand in its factory."""

from profiler_gui.toolkit.settings import Choice, SettingDescriptor
from profiler_gui.toolkit.theme import ThemeMode
from profiler_gui.toolkit.time_axis import TimeUnit

THEME = SettingDescriptor(
    "appearance/theme",
    str(ThemeMode.SYSTEM),
    "Theme",
    "Colours of the window.",
    choices=(Choice("system", "As the system"), Choice("light", "Light"), Choice("dark", "Dark")),
)
LANGUAGE = SettingDescriptor(
    "appearance/language",
    "system",
    "Language",
    "Language of the window.",
    choices=(Choice("system", "As the system"), Choice("en", "English"), Choice("zh_CN", "简体中文")),
    requires_restart=True,
)
TIME_UNIT = SettingDescriptor(
    "appearance/time_unit",
    str(TimeUnit.AUTO),
    "Times in",
    "How moments are written on rulers and in tables; wall clock where the capture tells the time of day.",
    choices=(
        Choice("auto", "Fitting units"),
        Choice("ns", "Nanoseconds"),
        Choice("us", "Microseconds"),
        Choice("ms", "Milliseconds"),
        Choice("wall_clock", "Wall clock"),
    ),
)
KEY_PRESET = SettingDescriptor(
    "keys/preset",
    "perfetto",
    "Keys as in",
    "Which keys apply where Perfetto and MindStudio Insight disagree: M sets a mark or selects a range.",
    choices=(Choice("perfetto", "Perfetto"), Choice("insight", "MindStudio Insight")),
)
WHEEL = SettingDescriptor(
    "keys/wheel",
    "scroll",
    "Mouse wheel",
    "What the wheel does on the timeline without Ctrl.",
    choices=(Choice("scroll", "Scrolls"), Choice("zoom", "Zooms at the pointer")),
)
MIN_TRACK_HEIGHT_PX = SettingDescriptor(
    "timeline/min_track_height_px",
    18,
    "Least height of a track (px)",
    "Higher tracks are easier to read and to hit.",
    minimum=10,
    maximum=64,
)
SHARED_SETTINGS = (THEME, LANGUAGE, TIME_UNIT, KEY_PRESET, WHEEL, MIN_TRACK_HEIGHT_PX)
