"""What partita offers to test suites: the pytest plugin (`plugin`)."""
