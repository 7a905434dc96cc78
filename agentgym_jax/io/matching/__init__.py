"""Matches: policies of runs in the groups of an environment."""
