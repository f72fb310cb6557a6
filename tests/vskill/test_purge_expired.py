"""manage.py purge_expired: what it deletes, and what it says to a person and to cron."""

from __future__ import annotations

import time
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db.models.functions import Now

from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.rate_limits.models import RequestCount

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("verbosity", "said"), [(0, ""), (1, "default: expired entries deleted: ")])
def test_expired_entries_go_and_cron_hears_nothing_of_it(env: WorkerEnv, verbosity: int, said: str) -> None:
    namespace = KVNamespace(KVEntry, env)
    for key in ("old", "new"):
        namespace.put_sync(key, {}, ttl=timedelta(hours=1))
    KVEntry.objects.filter(key="old").update(expires_at=Now() - timedelta(seconds=1))
    for key, ends_at in (("old", time.time() - 1), ("new", time.time() + 3600)):
        RequestCount.objects.create(namespace="default", key=key, count=1, ends_at=ends_at)
    out = StringIO()
    call_command("purge_expired", verbosity=verbosity, stdout=out)
    assert list(KVEntry.objects.values_list("key", flat=True)) == ["new"]
    assert list(RequestCount.objects.values_list("key", flat=True)) == ["new"]
    assert out.getvalue().startswith(said)
    assert bool(out.getvalue()) is bool(said)
