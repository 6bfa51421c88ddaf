"""The report as one HTML file: the blocks of the text formats, and a timeline that can be zoomed and searched."""
