"""The frame: rail, header, docks, menus from commands, palette, search, dialogs; knows panes only by factory."""
