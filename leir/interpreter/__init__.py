"""The two walks of the interpreter: point by point, which is the definition, and whole axes at a time."""
