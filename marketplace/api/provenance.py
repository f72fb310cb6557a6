"""Who signed a version and with which key: statements, signatures of files, and public keys."""

from __future__ import annotations

import json
from typing import Any, Final

from django.http import HttpResponse, HttpResponseBase
from django.urls import reverse

from marketplace.addresses import archive_href
from marketplace.api.http import SAFE, ApiCall, ApiError, allow_any_origin, api_view, json_response, tagged_response
from marketplace.api.lookup import named_skill, requested_version
from marketplace.api.trust import milliseconds
from marketplace.models import SigningKey, SkillVersion
from marketplace.provenance.keys import as_jwk
from marketplace.provenance.known_keys import known_keys
from marketplace.provenance.reading import find_signature, leaves_about, signs
from marketplace.provenance.trust import both_trusted, compromised_since, signature_state
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat

# By the end of an address beside those of the archives.
SIGNATURES: Final = {"intoto.json": "statement", "model.sig": "files"}
NOT_SIGNING: Final = "This registry does not sign what it publishes."
NOT_YET: Final = "This version is not signed yet; that takes a minute after its publication."

COMPROMISED: Final = (
    "This version was signed when somebody else may have had the key, so its signature is not trusted. It is signed "
    "anew with another key as soon as the registry can vouch for it."
)


@api_view(*SAFE)
def keys(call: ApiCall) -> HttpResponse:
    """Return the public keys of the registry as a JSON Web Key Set, those that sign now first.

    ``since`` and ``until`` say when a key signed first, and when another one took its place. Old keys still verify,
    except that nothing is trusted which a key signed at ``compromisedSince`` or later; ``revoked`` says the same in
    the words of OpenID Federation.
    """
    return json_response({"keys": [_shown(row) for row in known_keys(call.env)]}, max_age=60)


def _shown(row: SigningKey) -> dict[str, Any]:
    told = {
        **as_jwk(row.public_key),
        "since": isoformat(row.since),
        "until": isoformat(row.until) if row.until else None,
        "compromisedSince": isoformat(row.compromised_since) if row.compromised_since else None,
        "pem": f"/.well-known/vskill-keys/{row.key_id}.pem",
    }
    if row.compromised_since is not None:
        told["revoked"] = {"revoked_at": int(row.compromised_since.timestamp()), "reason": "compromised"}
    return told


@api_view(*SAFE)
def key(call: ApiCall) -> HttpResponseBase:
    """Return one public key in PEM, by its name: the SHA-256 of what is returned.

    A compromised key is refused here, because what is fetched is believed; the list of keys still has it.
    """
    name = call.path_parameters["name"].removesuffix(".pem")
    rows = SigningKey.objects.using(call.env.database).filter(namespace=call.env.name)
    found = rows.filter(key_id=name).first() if name.isalnum() and len(name) == 64 else None
    if found is None:
        raise ApiError(404, "This registry has no key of that name. /.well-known/vskill-keys.json lists all.")
    if found.compromised_since is not None:
        raise ApiError(
            410,
            f"This key is compromised: nothing that it signed at {isoformat(found.compromised_since)} or later is "
            "trusted. /.well-known/vskill-keys.json has it, and the keys that took its place.",
        )
    return tagged_response(call, found.public_key, "application/x-pem-file")


@api_view(*SAFE)
def provenance(call: ApiCall) -> HttpResponse:
    """Return what is signed of a version and where the log tells of it, the oldest entry first.

    ``statement`` is a DSSE envelope with an in-toto statement; ``null`` says that it is not signed. Where ``trusted``
    is false, a key signed it at ``compromisedSince`` or later, when somebody else may have had that key.
    """
    skill = named_skill(call)
    version = requested_version(call, skill)
    signature = find_signature(call.env, version)
    address = archive_href(skill.slug, version.version, "{}")
    told: dict[str, Any] = {
        "skill": skill.slug,
        "version": version.version,
        "signing": signs(call.env),
        "statement": None,
        "log": [{"index": leaf.number, "entry": leaf.body} for leaf in leaves_about(call.env, version)],
    }
    if signature is not None:
        since = compromised_since(signature)
        told |= {
            "trusted": both_trusted(signature),
            "compromisedSince": isoformat(since) if since else None,
            "statement": json.loads(signature.statement),
            "signedAt": isoformat(signature.signed_at),
            "keyId": signature.key.key_id,
            "modelSignature": address.replace("{}", "model.sig"),
            "modelSignatureKeyId": signature.files_key.key_id,
        }
    return json_response(told)


def signature_fields(env: WorkerEnv, version: SkillVersion, base: str) -> dict[str, Any]:
    """Return what ``clawhub skill verify`` says of the signature of a version; the client prints it as it is.

    Its ``status`` is what ``signature_state`` says. ``base`` is the address of the registry.
    """
    signature = find_signature(env, version)
    status = signature_state(env, signature)
    if signature is None:
        return {"status": status, "reason": NOT_YET if status == "pending" else NOT_SIGNING}
    told: dict[str, Any] = {
        "signedAt": milliseconds(signature.signed_at),
        "keyId": signature.key.key_id,
        "modelSignatureKeyId": signature.files_key.key_id,
    }
    if status == "untrusted":
        return {"status": status, "reason": COMPROMISED, **told}
    address = base + archive_href(version.skill.slug, version.version, "{}")
    files = {"statement": address.replace("{}", "intoto.json"), "modelSignature": address.replace("{}", "model.sig")}
    return {"status": status, **told, **files, "keys": f"{base}{reverse('marketplace:signing-keys')}"}


def signature_response(call: ApiCall, version: SkillVersion, kind: str) -> HttpResponseBase:
    """Return a file with what is signed of a version, for a ``kind`` of ``SIGNATURES``; raise ``ApiError`` for none."""
    signature = find_signature(call.env, version)
    if signature is None:
        raise ApiError(404, NOT_YET if signs(call.env) else NOT_SIGNING)
    if not both_trusted(signature):
        raise ApiError(404, COMPROMISED)
    answer = tagged_response(call, getattr(signature, SIGNATURES[kind]), "application/json")
    name = f"{version.skill.slug}-{version.version}.{kind}"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return allow_any_origin(answer)
