"""Tests of badges and cards."""
