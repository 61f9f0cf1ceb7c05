"""hermes-phone over a network that is cut, while phones and broker are killed."""
