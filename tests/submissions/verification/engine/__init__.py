"""Our own engine: what it reads, what it follows, and how it judges."""
