"""Statistics over runs and tasks, in plain numpy: aggregates, bootstrap intervals, comparisons, profiles, curves."""
