"""One API as the broker knows it: the table of what is served, a request's context, slices and error answers."""
