"""Django's PostgreSQL backend with a pool that gives out no dead connection: the ``ENGINE`` of settings."""
