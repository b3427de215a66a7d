"""Workload traces: reading, cleaning, writing, and the free slots that they leave."""
