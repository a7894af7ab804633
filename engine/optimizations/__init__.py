"""What can be switched on: one file per optimization; see ``interface`` and ``catalogue``."""
