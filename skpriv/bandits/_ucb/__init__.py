"""Upper confidence bounds on running sums."""
