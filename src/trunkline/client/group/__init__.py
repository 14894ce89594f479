"""A client of several servers: their names, the routes of resources, and the client itself."""
