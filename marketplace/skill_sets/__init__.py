"""Collections: sets of skills that an operator puts together, and that install as one."""
