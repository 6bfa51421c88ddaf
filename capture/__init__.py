"""Record a trace that analyze can use in full: warmed up, steady, with what was asked for stored inside."""
