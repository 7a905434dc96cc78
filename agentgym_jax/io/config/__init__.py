"""Experiments: what a user writes, checked before anything is built, and its files."""
