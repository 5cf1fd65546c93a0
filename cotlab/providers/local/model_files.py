"""Files of a model folder, their digest, and what libraries raise for those they cannot read."""

import hashlib
from pathlib import Path

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
_MODEL_FILE_PATTERNS = (
    "*.safetensors",
    "*.bin",
    "config.json",
    "generation_config.json",
    *TOKENIZER_FILE_PATTERNS,
    "process_reward.json",
)
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


def folder_revision(folder: Path, dtype: str) -> str:
    """Return the SHA-256 of a model folder's files and the dtype."""
    hasher = hashlib.sha256(dtype.encode())
    for path in sorted({p for pattern in _MODEL_FILE_PATTERNS for p in folder.glob(pattern)}):
        hasher.update(path.name.encode())
        with path.open("rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                hasher.update(block)
    return hasher.hexdigest()
