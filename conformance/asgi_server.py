"""The example server as an ASGI application: `uvicorn conformance.asgi_server:asgi`."""

from examples.everything_server import app

asgi = app.asgi(path="/mcp")
