"""Communities of schedulers: workloads, scenarios, simulation, results."""
