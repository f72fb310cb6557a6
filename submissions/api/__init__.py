"""The API of the submissions as JSON, and what is described of it as OpenAPI."""
