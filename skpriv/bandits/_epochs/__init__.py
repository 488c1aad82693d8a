"""Policies that refit an oracle at the end of public epochs."""
