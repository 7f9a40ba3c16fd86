"""The suite's own programs on paper, kernel by kernel: work and memory of many shapes at once, without torch.

Written by hand after the programs in layers/ and backends/, and held to what `trace` sees of these.
"""
