"""Reading and writing of file descriptors, on the event loop or on a thread."""
