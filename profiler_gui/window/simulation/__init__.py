"""The New Simulation dialog: a form over a scenario document, checked by the engine while it is filled in."""
