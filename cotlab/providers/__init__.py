"""Who answers requests. One vendor a file; errors become ``cotlab.core.errors.ProviderError`` at this edge."""
