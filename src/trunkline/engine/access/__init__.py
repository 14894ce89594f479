"""Access: guards of entries, decisions on requests, and the tenants of a server."""
