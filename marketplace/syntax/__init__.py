"""Syntax colours of the files of a skill, by a process of their own."""
