"""Signing in: the pages of an account, and the providers outside that say who somebody is."""
