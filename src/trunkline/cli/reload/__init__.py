"""`serve --reload`: watches files and replaces the server without dropping clients."""
