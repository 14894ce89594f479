"""What runs handlers and keeps their state, whatever protocol they are served over."""
