"""Give every skill the publisher that this release computes.

Two owners could share one: ``victim-`` and ``victim``, owners that differ only in case on hosts that tell case apart,
the same owner on two ports of a host. A subgroup was a publisher of its own and now belongs to its group.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urlsplit

from django.db import migrations

from vskill.kv.codec import encode

# As they were when this was written.
CASE_BLIND_HOSTS = frozenset({"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"})
SERVICES = frozenset({"scm", "git"})
LONGEST_URL, LONGEST_IDENTITY, LONGEST_HANDLE, HASH_DIGITS = 500, 300, 200, 12


def publisher_of(repo_url: str) -> tuple[str, str]:
    """Return the identity and the handle of the publisher of a repository, as the marketplace computes them."""
    parts = urlsplit(repo_url)
    segments = [unquote_to_bytes(segment).decode(errors="surrogateescape") for segment in parts.path.split("/")]
    segments = [segment for segment in segments if segment]
    if parts.scheme == "file":
        host, owners = "local", [owner.lower() for owner in segments[-2:-1] or ["local"]]
    else:
        port = {"https": ":443", "http": ":80"}.get(parts.scheme, ":443")
        host = parts.netloc.rpartition("@")[2].lower() or "local"
        host = host.removesuffix(port).removesuffix(".").removeprefix("www.")
        owners = segments[:-1] or [host]
        owners = [owner.lower() for owner in owners] if host in CASE_BLIND_HOSTS else owners
        host = f"{host}:443" if host == "local" else host
    owners = owners[: 2 if owners[0] in SERVICES else 1]
    quoted = "/".join(quote(owner.encode(errors="surrogateescape"), safe="~@+=,$!()'*;&:") for owner in owners)
    identity = f"{host}/{quoted}"
    if len(identity) > LONGEST_IDENTITY:
        identity = f"{identity[:200]}%{hashlib.sha256(identity.encode()).hexdigest()}%"
    return identity, handle_of(identity)


def handle_of(identity: str) -> str:
    """Return the handle of a publisher's identity."""
    host, _, owner = identity.partition("/")
    named = owner if host == "github.com" else f"{owner}.{host}"
    plain = re.fullmatch(r"[a-z0-9_-]+", owner) and re.fullmatch(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", host)
    if plain and len(named) <= LONGEST_HANDLE:
        return named
    safe = re.sub(r"[^a-z0-9._-]+", "-", named.lower()).strip(".-") or "-"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:HASH_DIGITS]
    return f"{safe[: LONGEST_HANDLE - HASH_DIGITS - 1]}~{digest}"


def part_publishers(apps: Any, schema_editor: Any) -> None:
    """Write the new publisher into every skill whose old one differs."""
    alias = schema_editor.connection.alias
    entries = apps.get_model("marketplace", "SkillEntry")._base_manager.using(alias)
    columns = entries.exclude(repo_url="").order_by("pk")
    rows = columns.values_list("pk", "repo_url", "publisher", "publisher_handle")
    for pk, repo_url, publisher, handle in list(rows.iterator(chunk_size=2000)):
        if len(repo_url) == LONGEST_URL:
            repo_url = str(read_value(entries.get(pk=pk).value).get("repoUrl", repo_url))
        try:
            wanted = publisher_of(repo_url)
        except ValueError:
            # No repository was ever fetched from such an address: another tool wrote it.
            continue
        if wanted != (publisher, handle):
            write(alias, entries.get(pk=pk), *wanted)


def read_value(text: str) -> dict[str, Any]:
    """Return the value of an entry, empty where it cannot be read; ``verify_store`` finds those."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def write(alias: str, entry: Any, publisher: str, handle: str) -> None:
    """Write the publisher into a skill's value and columns."""
    if value := read_value(entry.value):
        # A value that cannot be read stays as it is; its columns are what it can be rebuilt from.
        entry.value = encode({**value, "publisher": publisher, "publisherHandle": handle})
    entry.publisher, entry.publisher_handle = publisher, handle
    entry.version += 1
    entry.save_base(using=alias, raw=True, force_update=True)


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0004_unscanned_versions"),
    ]

    operations = [
        migrations.RunPython(part_publishers, migrations.RunPython.noop),
    ]
