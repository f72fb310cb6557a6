"""Search by the full-text engine of the database: what is indexed, how an engine is asked, and how hits are ranked."""
