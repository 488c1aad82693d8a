"""The types of columns: what a cell may be, a number or one of a list, and where it goes."""
