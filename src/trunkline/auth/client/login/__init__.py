"""The login of a user: the authorization code grant, its redirect, registration and renewal."""
