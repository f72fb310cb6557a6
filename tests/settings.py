"""Settings of the tests: the real ones, with a data directory that goes away, and cheap commits and password hashes."""

from __future__ import annotations

import atexit
import copy
import os
import shutil
import tempfile
from typing import Any

if "VSKILL_TEST_DATA_DIR" not in os.environ:
    # The first process makes it; workers of a parallel run inherit the variable.
    os.environ["VSKILL_TEST_DATA_DIR"] = tempfile.mkdtemp(prefix="vskill-test-")
    atexit.register(shutil.rmtree, os.environ["VSKILL_TEST_DATA_DIR"], ignore_errors=True)
os.environ["VSKILL_DATA_DIR"] = os.environ["VSKILL_TEST_DATA_DIR"]
os.environ.setdefault("VSKILL_HOSTS", "testserver,localhost,127.0.0.1")
os.environ.setdefault("VSKILL_SOURCE_ROOTS", tempfile.gettempdir())

from vskill.settings import *  # noqa: F403 - the variables above must be set first; a settings module is its names

# The data is deleted in a minute, and to wait for the disk at each commit would cost minutes. What tests start as a
# process waits for it, as an installation does.
DATABASES = copy.deepcopy(DATABASES)  # noqa: F405 - as above
for _database in DATABASES.values():
    _options: Any = _database["OPTIONS"]
    if "init_command" in _options:
        _options["init_command"] = _options["init_command"].replace("synchronous=FULL", "synchronous=OFF")

# All tests come from one address. What is tested of the limits switches them on, and the servers that tests start have
# the limits of an installation.
RATE_LIMITS = dict.fromkeys(RATE_LIMITS, "")  # noqa: F405 - as above
# A machine that does something else at the same time is slow, and no page is refused for it.
VISITOR_SECONDS = VISITOR_WAIT = 120.0
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
