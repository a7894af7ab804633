"""One file per output: JSON documents and text tables of analyses."""
