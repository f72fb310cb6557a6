"""What visitors report of skills: taken through a form, kept for operators, followed by whoever has the reference."""
