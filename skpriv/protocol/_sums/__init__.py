"""Secure aggregation with real devices: tasks, devices, servers and the analyst."""
