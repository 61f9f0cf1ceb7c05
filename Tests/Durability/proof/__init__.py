"""The parts of the durability proof; see Tests/Durability/README.md."""
