"""Communities of schedulers: nodes and jobs, scenarios, simulations, results."""
