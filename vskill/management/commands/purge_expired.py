"""Delete the entries that have expired."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from asgiref.sync import sync_to_async
from django.apps import apps

from vskill.environments import WorkerEnv
from vskill.kv.models import AbstractKVEntry
from vskill.kv.namespace import KVNamespace
from vskill.management.environment_command import EnvironmentCommand
from vskill.rate_limits.stored_counts import delete_ended


class Command(EnvironmentCommand):
    """Delete the expired entries of every table, to free their space; readers do not see them anyway."""

    all_by_default: ClassVar[bool] = True
    help = "Delete the entries that have expired. Readers never see an expired entry; this frees its space."

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Delete the expired entries of one environment."""
        tables = [model for model in apps.get_models() if issubclass(model, AbstractKVEntry)]
        purged = {model._meta.verbose_name: await KVNamespace(model, env).purge_expired() for model in tables}
        purged["counts of requests"] = await sync_to_async(delete_ended)(env.database)
        if options["verbosity"] > 1 or (options["verbosity"] and any(purged.values())):
            deleted = ", ".join(f"{count} of {name}" for name, count in purged.items())
            self.stdout.write(f"{env.name}: expired entries deleted: {deleted}")
