"""Finished runs against each other, and for other tools."""
