"""What the process tests share: brokers to start, clients to drive, and bounded waits."""
