"""The resource server: verifiers of credentials, challenges, tenants, configuration."""
