"""What the command prints: terminal, content, progress, reports."""
