"""Types, errors and protocols that every other package builds on; standard library only."""
