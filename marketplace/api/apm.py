"""Microsoft's apm: the versions of a skill as those of a package, by its registry HTTP API; it reads, and nothing else.

``owner`` is a publisher's handle or short handle, and the repository the slug. The client warns of nothing, so that a
version with findings is not offered to it; it still gets one that its lockfile has, byte for byte. It prints the
``detail`` of errors.
"""

from __future__ import annotations

from typing import Final

from django.http import HttpResponseBase

from marketplace.api.files import archive_response
from marketplace.api.http import SAFE, ApiCall, api_view, json_response
from marketplace.api.lookup import exact_version, named_skill
from marketplace.api.trust import said_of
from marketplace.models import SkillVersion
from marketplace.skills.visibility import fetchable_versions, light_versions
from vskill.kv.clock import isoformat
from vskill.rate_limits.kinds import Form, Kind

# The API has no pages.
MOST_VERSIONS: Final = 1000


@api_view(*SAFE, form=Form.PROBLEM)
def versions(call: ApiCall) -> HttpResponseBase:
    """List the versions of a skill that can be installed, newest first, each with the digest of its zip archive."""
    skill = named_skill(call)
    rows = SkillVersion.objects.using(call.env.database).filter(namespace=call.env.name, skill=skill, yanked_at=None)
    newest = light_versions(fetchable_versions(rows)).order_by("-ordinal")[:MOST_VERSIONS]
    offered = [one for one in newest if not said_of(one).suspicious]
    listed = [
        {
            "version": one.version,
            "digest": f"sha256:{one.zip_sha256}",
            "published_at": isoformat(one.created_at),
        }
        for one in offered
    ]
    return json_response({"versions": listed})


@api_view(*SAFE, kind=Kind.DOWNLOADS, form=Form.PROBLEM)
def download(call: ApiCall) -> HttpResponseBase:
    """Return the zip archive of one version."""
    found = exact_version(call.env, named_skill(call), call.path_parameters["version"])
    return archive_response(call, found, "zip", exact=True)
