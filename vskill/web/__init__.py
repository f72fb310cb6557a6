"""What happens to every request before a view answers it, and what is said when none does."""
