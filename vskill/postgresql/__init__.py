"""Django's PostgreSQL backend with a pool that gives out no connection that its server has ended: the ``ENGINE``."""
