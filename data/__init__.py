"""The suites, organisms and validation report of cotlab, as the package ``cotlab.data``."""
