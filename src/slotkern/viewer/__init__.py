"""Schedules as pages: one file each, which shows itself in any browser."""
