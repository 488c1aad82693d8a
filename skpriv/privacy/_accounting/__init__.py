"""Budgets, conversions, costs, amplification and reports: arithmetic on public numbers."""
