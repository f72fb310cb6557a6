"""Recognise the same and similar content: digests, what is published of it, and what is known to be bad."""

from __future__ import annotations
