"""Streams: running sums that are read many times."""
