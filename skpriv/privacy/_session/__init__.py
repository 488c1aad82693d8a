"""Sessions: one fit under one privacy model."""
