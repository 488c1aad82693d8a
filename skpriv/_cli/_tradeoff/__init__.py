"""The command `tradeoff`."""
