"""Send requests: from the response log, a vendor, its batch interface or a local model."""
