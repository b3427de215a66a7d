"""Owners of booked windows, closures of nodes, and files of pools."""
