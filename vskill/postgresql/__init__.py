"""The database backend (``ENGINE``): Django's for PostgreSQL, whose pool hands out no connection that is broken."""
