"""Benchmarks: ratios within one run, on databases of their own."""
