"""The HTTP/1.1 server: connections, the requests they carry and the responses they get."""
