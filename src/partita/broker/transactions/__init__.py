"""The shell of the transaction coordinator: shards, markers, questions of the produce path."""
