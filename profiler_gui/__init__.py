"""The window. Imports the engine; nothing imports it. Floors: see docs/architecture and the import contracts."""
