"""Fetch again what published skills refer to, and flag those for which it has changed since their check."""
