"""From a frame to the handler that answers it: dispatch, injected faults, traces of groups."""
