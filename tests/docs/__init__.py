"""What the documents promise, tried: their examples, and the files of docs/production."""
