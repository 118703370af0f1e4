"""From a frame to the handler that answers it: the table of APIs, dispatch, context, error answers."""
