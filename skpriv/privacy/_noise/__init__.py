"""The laws of privacy noise, and their draws."""
