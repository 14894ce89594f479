"""What helps to test programs made with this library; nothing here is needed to run one."""
