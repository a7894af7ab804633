"""Trace → frozen result. Pure functions; nothing here reads files, prints or plots."""
