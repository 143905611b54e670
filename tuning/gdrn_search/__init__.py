"""The parts of the command search.py, and what serves several machines."""
