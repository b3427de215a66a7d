"""Workload traces: reading, cleaning, writing, and the free slots they leave."""
