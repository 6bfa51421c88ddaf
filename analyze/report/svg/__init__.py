"""Pictures of a report as SVG files, light and dark, for a README or a pull request."""
