"""What an author registered: entries, paged lists, URI templates."""
