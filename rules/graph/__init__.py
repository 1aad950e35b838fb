"""Graph level: whole expressions."""
