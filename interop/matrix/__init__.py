"""The matrix: many clients, several servers, two transports, two eras, one conversation each."""
