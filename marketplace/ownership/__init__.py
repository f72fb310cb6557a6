"""Who owns a publisher: claims and their proofs, what an owner may do, and skills that change hands."""
