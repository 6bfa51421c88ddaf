"""What stands on a time axis, whoever draws it: gaps by state, amounts over time, places of findings."""
