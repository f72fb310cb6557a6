"""Settings of the tests: the real ones, with a data directory that goes away and a cheap password hash."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

if "VSKILL_TEST_DATA_DIR" not in os.environ:
    # The first process makes it; workers of a parallel run inherit the variable.
    os.environ["VSKILL_TEST_DATA_DIR"] = tempfile.mkdtemp(prefix="vskill-test-")
    atexit.register(shutil.rmtree, os.environ["VSKILL_TEST_DATA_DIR"], ignore_errors=True)
os.environ["VSKILL_DATA_DIR"] = os.environ["VSKILL_TEST_DATA_DIR"]
os.environ.setdefault("VSKILL_HOSTS", "testserver,localhost,127.0.0.1")
os.environ.setdefault("VSKILL_SOURCE_ROOTS", tempfile.gettempdir())

from vskill.settings import *  # noqa: F403 - the variables above must be set first; a settings module is its names

# All tests come from one address. What is tested of the limits switches them on, and the servers that tests start have
# the limits of an installation.
RATE_LIMITS = dict.fromkeys(RATE_LIMITS, "")  # noqa: F405 - as above
# A machine that does something else at the same time is slow, and no page is refused for it.
VISITOR_SECONDS = VISITOR_WAIT = 120.0
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
