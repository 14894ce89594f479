"""What a request has to pass before it is served: Host, Origin, proxies, rate, credentials."""
