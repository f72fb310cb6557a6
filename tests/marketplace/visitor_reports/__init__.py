"""Tests of what visitors report."""
