"""Read an upload in the form ``multipart/form-data``: a part ``payload``, and a part ``files`` for each file."""

from __future__ import annotations

from typing import Any, Final

from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParser, MultiPartParserError

from submissions.uploads.bundle import LIMITS
from submissions.uploads.errors import UploadRefused

_FILES: Final = "files"
_PAYLOAD: Final = "payload"


class _Parser(MultiPartParser):
    """Django's parser, which leaves the folders of a file's name: here the name is its path in the skill."""

    def sanitize_file_name(self, file_name: str) -> str:
        """Return the name as it was sent; whoever uses it checks it as a path."""
        return file_name


class _Collect(FileUploadHandler):
    """Keep the files in memory by their paths; the body of the request is limited."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, bytes]] = []
        self._parts: list[bytes] = []

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Begin with another file."""
        super().new_file(*args, **kwargs)
        self._parts = []

    def receive_data_chunk(self, raw_data: bytes, _start: int) -> None:
        """Take the next bytes; no other handler gets them."""
        self._parts.append(raw_data)

    def file_complete(self, _file_size: int) -> None:
        """Keep the file where it is one of the skill."""
        if self.field_name == _FILES:
            self.found.append((self.file_name or "", b"".join(self._parts)))


def read_multipart(request: HttpRequest) -> tuple[str, list[tuple[str, bytes]]]:
    """Return the text of ``payload``, and the path and the bytes of each file; raise ``UploadRefused``."""
    collect = _Collect()
    try:
        fields, _files = _Parser(request.META, request, [collect], "utf-8").parse()
    except MultiPartParserError as error:
        raise UploadRefused(400, "The body is no multipart/form-data. Nothing was kept.") from error
    except SuspiciousOperation as error:
        message = f"The body has more parts than a skill of {LIMITS.files} files, or too long ones. Nothing was kept."
        raise UploadRefused(413, message) from error
    return fields.get(_PAYLOAD, ""), collect.found
