"""Share groups under faults: members that take, keep, give back and reject records, and the rules of their locks."""
