"""Access tokens: how a program says who it works for, and what it may do in that person's name."""
