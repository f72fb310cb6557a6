"""Claims of publishers: the code is looked for where only the owner can write, or the owner signs in at the host."""
