"""The runtime against published measurements: tables of rows that are read from outside the repository."""
