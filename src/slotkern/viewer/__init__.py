"""Schedules as self-contained HTML pages, one file each."""
