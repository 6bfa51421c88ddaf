"""What the records can support: oddities of a file, of its device records and of the run, and the bounds they leave."""
