"""Files of a tokenizer, and what libraries raise for those that cannot be read."""

TOKENIZER_FILE_PATTERNS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
    "chat_template.*",
)
"""Files of a tokenizer that a revision is a digest of."""
TOKENIZER_ERRORS = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,
    ImportError,
)
"""What the library raises for files that are missing, damaged or of another kind."""
