"""The process in which a consumer of the reliability tests handles isolated messages: ``ENVIRONMENT SECONDS``."""

from __future__ import annotations

import sys

import django

if __name__ == "__main__":
    django.setup()
    from tests.reliability.roles import consume

    consume(names=[sys.argv[1]], seconds=float(sys.argv[2]), isolated=True)
