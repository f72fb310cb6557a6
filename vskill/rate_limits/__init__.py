"""Counts of what each client does in a while, shared by processes, and the limits that follow from them."""
