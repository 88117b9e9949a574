"""Phase `schedule`: every kernel gets its template and parameters, every weight its format."""
