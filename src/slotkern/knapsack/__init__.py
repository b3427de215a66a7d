"""Knapsacks that users call, without time."""
