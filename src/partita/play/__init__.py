"""Stories of a group that play: members by name, commands in a text file, on the simulator or on a real broker."""
