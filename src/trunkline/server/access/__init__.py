"""Access control: who may list and call what, limits of tenants, and the audit of requests."""
