"""What serves each method: the table of those that name an entry, and all others."""
