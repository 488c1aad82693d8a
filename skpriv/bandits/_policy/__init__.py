"""What every policy is, in three steps: it has a run, it acts, and it learns."""
