"""Database work for visitors: on threads of its own, with a deadline that ends a statement in the database."""
