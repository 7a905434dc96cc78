"""A run driven from the host: its parts, programs, records, summary and directory."""
