"""Signed provenance: keys, statements about versions, and an append-only log of verdicts and withdrawals."""
