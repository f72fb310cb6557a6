"""Accounts of operators: the environments that each may work in, and sessions that belong to one environment."""
