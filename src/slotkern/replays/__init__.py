"""Replays of job flows: clusters, policies, results.

The package is not named like the function `slotkern.replay`: importing a module sets
the attribute of its name.
"""
