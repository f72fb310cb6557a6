"""Build an OpenAPI 3.1 document from tables of operations, which stand beside the views that they describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Schema = dict[str, Any]
Operations = Mapping[str, Mapping[str, Any]]
"""By the template of a path, such as ``/api/v1/skills/{slug}``: the operations by their methods in lower case."""

TEXT: Final[Schema] = {"type": "string"}
INTEGER: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
NULL: Final[Schema] = {"type": "null"}
# Milliseconds since 1970, or an ISO 8601 text; which of them follows from the client that reads the field.
MILLISECONDS: Final[Schema] = {"type": "integer", "minimum": 0, "description": "Milliseconds since 1970."}
MOMENT: Final[Schema] = {"type": "string", "description": "A time in ISO 8601."}
SHA256: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}

_WORDS: Final = {
    304: "The client has this content already, by its If-None-Match.",
    400: "The request cannot be meant; the text says which part of it.",
    401: "A token is missing, expired or revoked, or this registry is closed to strangers.",
    403: "Whoever asks may not do this.",
    404: "There is no such thing; the text names what is near.",
    405: "This method is not offered here; Allow names those that are.",
    409: "It has changed since it was looked at, or cannot be done now; nothing was done.",
    410: "It was withdrawn; the text has the reason.",
    413: "The body is too long.",
    422: "The repository or the upload cannot be submitted; the text says why.",
    429: "The limit of this client is used up; Retry-After says for how many seconds.",
    503: "The registry is busy or its database away; Retry-After says when to come back.",
}
_HEADERS: Final = {
    405: {"Allow": {"required": True, "schema": TEXT}},
    429: {"Retry-After": {"required": True, "schema": TEXT}},
}
# These follow from the middleware, or from the decorator of a view, on every route.
ALWAYS: Final = (400, 401, 403, 405, 429, 503)
# What the middleware and Django themselves can answer, whatever the form of the errors of a route.
JSON_ERROR: Final = {"$ref": "#/components/schemas/Error"}


def shape(fields: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None, **more: Any) -> Schema:
    """Return the schema of an object that has all of ``fields`` and may have those that are ``optional``."""
    return {"type": "object", "required": list(fields), "properties": {**fields, **(optional or {})}, **more}


def listed(item: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": item}


def or_null(schema: Schema) -> Schema:
    """Return a schema that null fits as well."""
    return {"anyOf": [schema, NULL]}


def query(name: str, schema: Schema, description: str, *, required: bool = False) -> dict[str, Any]:
    """Return the parameter ``name`` of the query string; ``schema`` is what its values have to fit."""
    return {"name": name, "in": "query", "required": required, "schema": schema, "description": description}


def in_path(name: str, description: str) -> dict[str, Any]:
    """Return a parameter in the path."""
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}} | {
        "description": description
    }


def operation(
    name: str,
    summary: str,
    answers: Mapping[int, Mapping[str, Schema]],
    *,
    errors: tuple[int, ...] = (),
    json_errors: bool = False,
    parameters: tuple[Mapping[str, Any], ...] = (),
    body: Schema | None = None,
    other_bodies: Mapping[str, Schema] | None = None,
    optional_body: bool = False,
    cached: bool = False,
) -> dict[str, Any]:
    """Return one operation, whose ``name`` is unique and whose ``summary`` is a sentence.

    ``parameters`` are those of ``query`` and ``in_path``, and ``body`` is the schema of what is sent as JSON;
    ``other_bodies`` have that of other media types. With ``optional_body`` nothing need be sent.
    ``answers`` has the schemas of what is answered by status and media type, ``errors`` are the statuses beyond those
    that every route has, which are objects with ``json_errors`` and plain texts without. ``cached`` says that an answer
    has an ETag and that 304 is answered to whoever has it.
    """
    form: Mapping[str, Any] = (
        {"application/json": {"schema": JSON_ERROR}} if json_errors else {"text/plain": {"schema": TEXT}}
    )
    responses: dict[str, Any] = {}
    for status, media in answers.items():
        found: dict[str, Any] = {"description": _WORDS.get(status, "What was asked for.")}
        found["content"] = {kind: {"schema": schema} for kind, schema in media.items()}
        if cached and status == 200:
            found["headers"] = {"ETag": {"required": True, "schema": TEXT}}
        responses[str(status)] = found
    if cached:
        responses["304"] = {"description": _WORDS[304]}
    for status in sorted({*ALWAYS, *errors} - answers.keys()):
        responses[str(status)] = {"description": _WORDS[status], "content": form}
        if status in _HEADERS:
            responses[str(status)]["headers"] = _HEADERS[status]
    told: dict[str, Any] = {"operationId": name, "summary": summary, "responses": responses}
    if parameters:
        told["parameters"] = list(parameters)
    bodies = {**({} if body is None else {"application/json": body}), **(other_bodies or {})}
    if bodies:
        content = {kind: {"schema": schema} for kind, schema in bodies.items()}
        told["requestBody"] = {"required": not optional_body, "content": content}
    return told


def document(*tables: Operations) -> dict[str, Any]:
    """Return the document of all operations in ``tables``; its server is the host that it is read from.

    Tables may share a path, each with methods of its own.
    """
    paths: dict[str, dict[str, Any]] = {}
    for table in tables:
        for path, methods in table.items():
            paths.setdefault(path, {}).update(methods)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "vskill",
            "version": "1",
            "description": "A registry of agent skills. Reading an open registry needs no account; a token is sent as "
            "Authorization: Bearer. HEAD is answered wherever GET is.",
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Error": shape({"error": TEXT, "message": TEXT}, {"retryAfter": INTEGER, "near": listed(TEXT)})
            },
        },
    }
