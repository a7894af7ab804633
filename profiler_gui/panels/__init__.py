"""The panes of the window. Each reads the session, asks it for changes, and never imports another one."""
