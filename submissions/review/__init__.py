"""The review of what is held: its queue, the page of one submission, undo, appeals, and the accuracy of rules."""
