"""The answers: records in, sentences, tables and figures out. Nothing here imports torch, but verify, to count."""
