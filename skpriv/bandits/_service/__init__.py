"""Policies behind a service: events that come late, twice or never, and processes that die."""
