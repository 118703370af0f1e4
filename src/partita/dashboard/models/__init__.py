"""The contents of each page as values: templates and JSON show the same."""
