"""Policies inside other libraries, and with their methods."""
