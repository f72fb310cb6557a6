"""The errors of the KV layer.

KVError
├── InvalidKey        a key is empty, too long, or not storable
├── InvalidValue      a value is not JSON
├── InvalidCursor     a cursor belongs to another listing, or is no cursor
├── VersionConflict   another writer was first
├── ProjectedColumn   a projected column was written without its value
└── EntryUnavailable  an entry that was needed could not be read
"""

from __future__ import annotations

from vskill.errors import VskillError


class KVError(VskillError):
    """Base of the errors of the KV layer."""

    code = "kv_error"


class InvalidKey(KVError):
    """A key is empty, too long, or has a character that some database cannot store."""

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
    """An entry that was needed has no value to read; ``status`` is the status of its outcome."""

    code = "entry_unavailable"

    def __init__(self, message: str, status: str) -> None:
        """Keep ``status`` beside the message."""
        super().__init__(message)
        self.status = status
