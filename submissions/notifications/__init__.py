"""Tells people what happened: fans events out to those who want to hear of them, and delivers that with retries."""
