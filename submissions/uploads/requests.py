"""Read what the two forms of an upload say: which skill, which version, and which files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest

from submissions.uploads.bundle import FileList, NamedFile, check_file, checked_list
from submissions.uploads.errors import UploadRefused
from submissions.uploads.multipart import read_multipart
from submissions.uploads.owners import Wish
from vskill.access_tokens.token_form import without_tokens
from vskill.hidden_characters import MAX_SENTENCE, visible

# Of the JSON that names 500 files, each with a ticket.
MOST_JSON: Final = 1024 * 1024
_KEPT: Final = "Nothing was kept."


@dataclass(frozen=True)
class Upload:
    """An upload as it was asked for; ``contents`` is ``None`` where its files were sent ahead."""

    wish: Wish
    files: FileList
    contents: Mapping[str, bytes] | None


def read_upload(request: HttpRequest) -> Upload:
    """Return what a request to publish says, in either form; call it on a thread, since it reads the body.

    Raises ``UploadRefused``.
    """
    if request.content_type == "multipart/form-data":
        payload, sent = read_multipart(request)
        wish = _wish(_object(payload.encode()))
        named = [NamedFile(path, len(content), hashlib.sha256(content).hexdigest()) for path, content in sent]
        return Upload(wish, checked_list(named), dict(sent))
    body = read_json(request)
    files = body.get("files")
    if not isinstance(files, list):
        raise UploadRefused(400, f"'files' is a list of files. {_KEPT}")
    return Upload(_wish(body), checked_list(_named(one) for one in files), None)


def read_json(request: HttpRequest) -> dict[str, Any]:
    """Return the JSON object in the body of a request, empty for none; raise ``UploadRefused`` for any other body."""
    content = request.read(MOST_JSON + 1)
    if len(content) > MOST_JSON:
        raise UploadRefused(413, f"The body is larger than {MOST_JSON // 1024} KiB. {_KEPT}")
    return _object(content or b"{}")


def announced_file(request: HttpRequest) -> NamedFile:
    """Return the file for which a request asks where to upload it; raise ``UploadRefused``."""
    file = _named(read_json(request))
    check_file(file.path, file.size, file.sha256)
    return file


def _object(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
        # Half of a surrogate pair can be written in JSON, and is no text that anything could keep.
        json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise UploadRefused(400, f"The body is no JSON, or has text that is no Unicode. {_KEPT}") from None
    if not isinstance(body, dict):
        raise UploadRefused(400, f"The body is no JSON object. {_KEPT}")
    return body


def _wish(body: Mapping[str, Any]) -> Wish:
    texts = {name: body.get(name) or "" for name in ("slug", "version", "ownerHandle", "changelog")}
    for name, value in texts.items():
        if not isinstance(value, str) or "\0" in value:
            raise UploadRefused(400, f"'{name}' is no text. {_KEPT}")
    if body.get("migrateOwner"):
        raise UploadRefused(400, f"An upload does not move a skill to another owner. {_KEPT}")
    if body.get("tags") not in (None, [], ["latest"]):
        raise UploadRefused(400, f"The only tag here is latest, and it follows the versions. {_KEPT}")
    return Wish(texts["slug"], texts["version"], texts["ownerHandle"], _one_line(texts["changelog"]))


def _one_line(text: str) -> str:
    """Return what an uploader says as a line that is safe to show and no longer than others; tokens are left out."""
    # A multiple of what is shown, so that a long text costs no time.
    return visible(without_tokens(" ".join(text[: 4 * MAX_SENTENCE].split())))


def _named(one: Any) -> NamedFile:
    fields = one if isinstance(one, dict) else {}
    path, size, sha256 = (fields.get(name) for name in ("path", "size", "sha256"))
    if not isinstance(path, str) or not isinstance(sha256, str) or not isinstance(size, int) or isinstance(size, bool):
        raise UploadRefused(400, f"A file has a 'path', a 'size' and a 'sha256'. {_KEPT}")
    return NamedFile(path, size, sha256)
