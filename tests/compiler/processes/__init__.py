"""Scripts that `test_threads` runs in processes of their own."""
