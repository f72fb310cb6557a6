"""The pages of the submissions: submitting, the queue, one submission, jobs."""
