"""Options of `format("partita")`: the table, parsing, and the checks that need no connection. Pure."""
