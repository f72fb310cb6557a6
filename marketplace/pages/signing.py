"""What pages say of the signatures of a version, of its entries in the log, and of the keys of the registry."""

from __future__ import annotations

import json
import shlex
from typing import Any, Final

from django.urls import reverse

from marketplace.addresses import archive_href
from marketplace.models import LogLeaf, SigningKey, VersionSignature
from marketplace.pages.skill import Found
from marketplace.provenance.known_keys import known_keys
from marketplace.provenance.log import latest_head
from marketplace.provenance.reading import find_signature, leaves_about, signs
from marketplace.provenance.trust import both_trusted, compromised_since, signature_state
from vskill.environments import WorkerEnv

# Of the newest entries; the API has all of them.
_MOST_ENTRIES: Final = 5
_WORDS: Final = {
    "published": "published",
    "scanned": "scanned again with another verdict",
    "flagged": "flagged",
    "flag-cleared": "flag cleared",
    "yanked": "yanked",
    "unyanked": "no longer yanked",
    "version-quarantined": "in quarantine",
    "version-restored": "out of quarantine",
}


def signing(env: WorkerEnv, found: Found, base: str) -> dict[str, Any]:
    """Return what the page of a skill says of the signatures of the version that it shows.

    ``base`` is the address of the registry. ``signed`` is None where the version has no signature, and ``signs`` says
    whether it will have one. ``entries`` are those of the log about it, the newest last, ``size`` is how many entries
    the newest signed head has, None without one.
    """
    signature = find_signature(env, found.version)
    leaves = leaves_about(env, found.version)[-_MOST_ENTRIES:]
    head = latest_head(env) if leaves else None
    return {
        "signs": signs(env),
        "signed": _signed(found, signature, base) if signature is not None else None,
        "entries": [_entry(leaf, head.size) for leaf in leaves] if head is not None else [],
        "size": head.size if head is not None else None,
        "log_href": reverse("marketplace:log"),
    }


def signing_in_short(env: WorkerEnv, found: Found) -> dict[str, Any]:
    """Return the ``state`` of a version's signature, by ``signature_state``, and when and by which key it is signed."""
    signature = find_signature(env, found.version)
    state = signature_state(env, signature)
    if signature is None:
        return {"state": state}
    return {"state": state, "at": signature.signed_at, "key": signing_key(signature.key)}


def _signed(found: Found, signature: VersionSignature, base: str) -> dict[str, Any]:
    """Return what is said of a signature.

    ``compromised_since`` is None where both of its keys are good. Where it is not ``trusted``, nobody is told how to
    verify it, and ``doubted`` says that it will not be signed anew.
    """
    slug, number = found.skill.slug, found.version.version
    since = compromised_since(signature)
    return {
        "at": signature.signed_at,
        "key": signing_key(signature.key),
        "compromised_since": since,
        "trusted": both_trusted(signature),
        "doubted": bool(signature.doubt),
        "statement_href": archive_href(slug, number, "intoto.json"),
        "files_href": archive_href(slug, number, "model.sig"),
        # Nobody could follow it without the key, which is not given away any more.
        "command": _command(found, signature, base) if since is None else "",
    }


def _command(found: Found, signature: VersionSignature, base: str) -> str:
    """Return the lines that fetch and unpack an archive, and verify it with the public tool."""
    slug, number = found.skill.slug, found.version.version
    fetched = {
        f"{slug}.tar.gz": archive_href(slug, number, "tar.gz"),
        f"{slug}.sig": archive_href(slug, number, "model.sig"),
        "registry.pem": signing_key(signature.files_key)["href"],
    }
    return "\n".join(
        [
            *(f"curl -fsSLo {name} {shlex.quote(base + path)}" for name, path in fetched.items()),
            f"mkdir {slug} && tar -xzf {slug}.tar.gz -C {slug}",
            f"model_signing verify key {slug} --signature {slug}.sig --public_key registry.pem --no-ignore-git-paths",
        ]
    )


def _entry(leaf: LogLeaf, size: int) -> dict[str, Any]:
    """Return an entry in words; it can be proven once a signed head has it."""
    told = json.loads(leaf.body)
    proof = f"{reverse('marketplace:log-inclusion')}?index={leaf.number}" if leaf.number < size else ""
    return {"number": leaf.number, "words": _WORDS.get(leaf.kind, leaf.kind), "at": told.get("at"), "href": proof}


def signing_key(row: SigningKey) -> dict[str, Any]:
    """Return a public key as pages show it."""
    return {
        "name": row.key_id,
        "algorithm": {SigningKey.ED25519: "Ed25519", SigningKey.P256: "P-256"}.get(row.algorithm, row.algorithm),
        "since": row.since,
        "until": row.until,
        "compromised_since": row.compromised_since,
        "href": reverse("marketplace:signing-key", args=[f"{row.key_id}.pem"]),
    }


def signing_keys(env: WorkerEnv) -> dict[str, Any]:
    """Return what the page about verdicts says of the keys of the registry: those that sign now first."""
    return {"signs": signs(env), "keys": [signing_key(row) for row in known_keys(env)]}
