"""The rules that every history is judged by."""
