"""Feeds in Atom: what is new, what has changed and what was withdrawn; of everything, a publisher or a search."""
