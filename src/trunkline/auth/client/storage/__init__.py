"""Where logins are kept beyond the process: files, and the keyring of the system."""
