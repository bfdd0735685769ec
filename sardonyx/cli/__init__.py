"""The command line: flags to public calls."""
