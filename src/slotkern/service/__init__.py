"""The service: a ledger over HTTP, and a pool as tools of agents over standard input.

`app` has the ASGI application that ``slotkern serve`` runs: requests and responses are
JSON with the field names of docs/json.md, and every request but the health check needs
the token of a user. `mcp` has the server of ``slotkern mcp``. Both call `operations`.
"""
