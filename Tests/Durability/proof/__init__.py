"""What the durability proof is made of; see Tests/Durability/README.md."""
