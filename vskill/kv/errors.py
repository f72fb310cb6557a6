"""The errors of the KV layer.

KVError
├── InvalidKey        a key that no database could hold
├── InvalidValue      a value that is not JSON
├── InvalidCursor     a cursor of another listing, or no cursor at all
├── VersionConflict   another writer was first
├── ProjectedColumn   a projected column was written alone
└── EntryUnavailable  a key that was needed could not be read
"""

from __future__ import annotations

from vskill.errors import VskillError


class KVError(VskillError):
    """Base of the errors of the KV layer."""

    code = "kv_error"


class InvalidKey(KVError):
    """A key is empty, too long, or holds a character that no database can keep."""

    code = "invalid_key"


class InvalidValue(KVError):
    """A value or its metadata cannot be written as JSON."""

    code = "invalid_value"


class InvalidCursor(KVError):
    """A cursor does not belong to this listing."""

    code = "invalid_cursor"


class VersionConflict(KVError):
    """An entry is not at the version that the writer expected; nothing was written."""

    code = "version_conflict"


class ProjectedColumn(KVError):
    """A column that is projected from the value was written without the value; nothing was written."""

    code = "projected_column"


class EntryUnavailable(KVError):
    """An entry that was needed has no value to read; ``status`` is the word of its outcome."""

    code = "entry_unavailable"

    def __init__(self, message: str, status: str) -> None:
        """Keep the status beside the sentence."""
        super().__init__(message)
        self.status = status
