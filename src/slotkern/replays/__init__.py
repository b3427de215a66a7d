"""Replays of job flows: clusters, policies, results.

The package is not called ``replay``, because importing it would then replace the
function `slotkern.replay`.
"""
