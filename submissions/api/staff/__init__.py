"""What reviewers and operators do in the admin, as calls of the API: with a token for it, and the role."""
