"""Accounts: who sends a request, roles and limits in each environment, and sessions that belong to one environment."""
