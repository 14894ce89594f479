"""What a program uses of a server: `Server`, its core and services, mounts, ready middleware."""
