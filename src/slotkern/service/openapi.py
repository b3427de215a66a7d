"""The OpenAPI document of a service, made from its list of operations."""

from __future__ import annotations

from typing import Any

import slotkern as sk
from slotkern.service.inputs import NUMBER, object_schema
from slotkern.service.operations import OPERATIONS, Operation
from slotkern.service.tables import ARROW

__all__ = ["document"]

_TABLE = (
    "A table with a row for each job, whose columns are the fields of a request and "
    "name. The other fields of the body are in the query."
)

_OTHERS = {
    "/healthz": ("Whether the ledger can be read; needs no token.", "application/json"),
    "/v1/events": ("The entries of the log as they come.", "text/event-stream"),
    "/v1/page": ("The pool as an interactive page.", "text/html"),
    "/v1/openapi.json": ("This document.", "application/json"),
}


def document() -> dict[str, Any]:
    """Return the description of all paths in OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        methods = paths.setdefault(operation.path, {})
        methods[operation.method.lower()] = _describe(operation)
    for path, (summary, kind) in _OTHERS.items():
        content = {"description": summary, "content": {kind: {}}}
        paths[path] = {"get": {"summary": summary, "responses": {"200": content}}}
    paths["/healthz"]["get"]["security"] = []
    schemes = {name: {"type": "http", "scheme": name} for name in ("bearer", "basic")}
    return {
        "openapi": "3.1.0",
        "info": {"title": "slotkern", "version": sk.__version__},
        "security": [{name: []} for name in schemes],
        "components": {"securitySchemes": schemes},
        "paths": paths,
    }


def _describe(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {"operationId": operation.name}
    found |= {"summary": operation.summary, "x-role": operation.role}
    success = {"description": operation.summary, "content": {"application/json": {}}}
    if operation.table is not None:
        success["content"] = {"application/json": {}, ARROW: {}}
    problem = {"description": "The reason, as application/problem+json."}
    found["responses"] = {"200": success, "default": problem}
    if operation.created:
        found["responses"]["201"] = success | {"description": operation.created}
    parameters: list[dict[str, Any]] = []
    if "{id}" in operation.path:
        number = {"name": "id", "in": "path", "required": True}
        parameters.append(number | {"schema": NUMBER})
    for name, text in operation.query.items():
        parameters.append({"name": name, "in": "query", "description": text})
        parameters[-1]["schema"] = {"type": "string"}
    if operation.takes_table:
        for name, each in operation.table_query.items():
            text = "Only with a table of Arrow as the body."
            parameters.append({"name": name, "in": "query", "description": text})
            parameters[-1]["schema"] = each
    if parameters:
        found["parameters"] = parameters
    if operation.fields:
        schema = object_schema(operation.fields, operation.required)
        content: dict[str, Any] = {"application/json": {"schema": schema}}
        if operation.takes_table:
            content[ARROW] = {"schema": {"description": _TABLE}}
        found["requestBody"] = {"required": True, "content": content}
    return found
