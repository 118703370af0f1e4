"""The calls of a share consumer: records, the two faces, workers, closing."""
