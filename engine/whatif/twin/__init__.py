"""A simulated twin of a recorded job: the scenario whose shapes, layout and load are the capture's."""
