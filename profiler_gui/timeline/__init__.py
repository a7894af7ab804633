"""The Timeline: level of detail and rasteriser (numpy, no Qt), layout of tracks, headers, canvas, minimap, ruler.

The view reads the session and asks it for change; hover and drag are its own. ``TimelineView`` is what a window shows,
``timeline_commands`` what a user can do with it.
"""
