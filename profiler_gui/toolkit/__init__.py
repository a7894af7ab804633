"""Qt helpers that know nothing about traces: translations, settings, theme, time texts, tables' habits."""
