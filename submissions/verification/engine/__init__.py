"""Our own engine: reads a skill as what it is, follows values from source to sink, and judges combinations."""
