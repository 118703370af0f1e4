"""One API as the broker knows it: the table of served APIs, a request's context, slices and error answers."""
