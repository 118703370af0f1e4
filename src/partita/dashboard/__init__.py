"""`partita dashboard`: the groups of a cluster as web pages. The pages read memory only; an observer fills it."""
