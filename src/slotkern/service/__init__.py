"""The service: a ledger over HTTP, for web forms and programs in other languages.

`application` returns the ASGI application that ``slotkern serve`` runs. Requests and
responses are JSON with the field names of docs/json.md. Every request but the health
check needs the token of a user.
"""
