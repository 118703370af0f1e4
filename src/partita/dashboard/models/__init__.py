"""What each page says, as values: templates and JSON show the same."""
