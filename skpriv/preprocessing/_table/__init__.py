"""From a table of mixed columns to rows of the unit ball."""
