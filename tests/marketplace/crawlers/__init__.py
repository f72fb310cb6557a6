"""Tests of what crawlers read."""
