"""`proxy`: relays, records and judges traffic."""
