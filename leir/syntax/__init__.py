"""What the parser stands on: the grammar, the pre-scan that bounds hostile text, places in the text, errors."""
