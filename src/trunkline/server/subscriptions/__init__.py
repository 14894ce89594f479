"""Subscriptions and change notifications."""
