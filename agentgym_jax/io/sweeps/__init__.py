"""Sweeps over any setting: what varies, in which groups, and one table over all."""
