"""The dashboard's pages: what each shows, and the components that they share."""
