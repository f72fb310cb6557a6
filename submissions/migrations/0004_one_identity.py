"""Give every submission the identity that its skill has in the marketplace.

Both apps computed one, and they differed in the case of owners and repositories: ``gitlab.com/Acme`` and ``/acme`` were
two submissions and one skill. Where two live submissions turn out to be one, the newest goes on and the others leave
the queue with a reason.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from typing import Any
from urllib.parse import urlsplit

from django.db import migrations
from django.db.models.functions import Now

from vskill.kv.clock import database_now, isoformat
from vskill.kv.codec import encode

# As they were when this was written, and as the indexes of then have them.
CASE_BLIND_HOSTS = frozenset({"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"})
LIVE = frozenset(
    {
        "RECEIVED",
        "TIER1_SCANNING",
        "TIER2_SCANNING",
        "AUTO_APPROVED",
        "VENDOR_APPROVED",
        "ON_HOLD",
        "RESCAN_REQUIRED",
    }
)
LONGEST_URL, LONGEST_PATH = 500, 400


def skill_identity(repo_url: str, skill_path: str) -> str:
    """Return the identity of a skill, as the marketplace computes it."""
    parts = urlsplit(repo_url.strip())
    host = parts.netloc.rpartition("@")[2].lower() or "local"
    path = parts.path.rstrip("/").removesuffix(".git")
    path = path.lower() if host in CASE_BLIND_HOSTS else path
    repository = f"{parts.scheme.lower()}://{'' if host == 'local' else host}{path}"
    inside = "/".join(segment for segment in skill_path.split("/") if segment not in ("", "."))
    return hashlib.sha256(f"{repository}\0{inside}".encode(errors="surrogatepass")).hexdigest()


def unify_identities(apps: Any, schema_editor: Any) -> None:
    """Write the new identity into every submission whose old one differs."""
    alias = schema_editor.connection.alias
    entries = apps.get_model("submissions", "SubmissionEntry")._base_manager.using(alias)
    changed: dict[tuple[str, str], list[int]] = defaultdict(list)
    columns = (
        entries.exclude(identity="").order_by("pk").values_list("pk", "namespace", "identity", "repo_url", "skill_path")
    )
    for pk, namespace, identity, repo_url, skill_path in columns.iterator(chunk_size=2000):
        if len(repo_url) == LONGEST_URL or len(skill_path) == LONGEST_PATH:
            value = read_value(entries.get(pk=pk).value)
            repo_url, skill_path = str(value.get("repoUrl", repo_url)), str(value.get("skillPath", skill_path))
        if (wanted := skill_identity(repo_url, skill_path)) != identity:
            changed[namespace, wanted].append(pk)
    for (namespace, identity), pks in changed.items():
        alike = entries.filter(namespace=namespace, state__in=sorted(LIVE))
        live = list((alike.filter(identity=identity) | alike.filter(pk__in=pks)).order_by("-submitted_at", "-pk"))
        for entry in live[1:]:
            leave_queue(apps, alias, entry, live[0].key.removeprefix("sub:"))
        for entry in entries.filter(pk__in=pks):
            write(alias, entry, identity=identity)


def read_value(text: str) -> dict[str, Any]:
    """Return the value of an entry, empty where it cannot be read; ``verify_store`` finds those."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def write(alias: str, entry: Any, **changes: Any) -> None:
    """Write changed parts of a submission's value, and the columns of the same names."""
    value = read_value(entry.value)
    if value:
        # A value that cannot be read stays as it is; its columns are what it can be rebuilt from.
        entry.value = encode({**value, **changes})
    for name in changes.keys() & {"identity", "state"}:
        setattr(entry, name, changes[name])
    entry.version += 1
    entry.save_base(using=alias, raw=True, force_update=True)


def leave_queue(apps: Any, alias: str, entry: Any, kept: str) -> None:
    """Take one of two live submissions of a skill out of the queue, with a row of its history."""
    before, reason = entry.state, f"it is the same skill as {kept}, which was submitted later under another address"
    entry.state_at = database_now(alias)
    write(alias, entry, state="DEQUEUED", reason=reason, updatedAt=isoformat(entry.state_at))
    apps.get_model("submissions", "SubmissionTransition")._base_manager.using(alias).create(
        namespace=entry.namespace,
        submission_id=entry.key.removeprefix("sub:"),
        sequence=entry.version,
        from_state=before,
        to_state="DEQUEUED",
        reason=reason,
        actor="migration",
        trigger="one_identity",
        created_at=Now(),
    )


class Migration(migrations.Migration):
    dependencies = [
        ("submissions", "0003_hot_queries"),
    ]

    operations = [
        migrations.RunPython(unify_identities, migrations.RunPython.noop),
    ]
