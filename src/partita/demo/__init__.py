"""The main job on real data: flights through a consumer group into Spark (`partita demo`)."""
