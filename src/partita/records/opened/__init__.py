"""Work on the records inside a batch that makes no object per record: checks, searches, another codec."""
