"""Pictures of numbers and of what a skill can touch, drawn on the server as SVG, each with its numbers as a table."""
