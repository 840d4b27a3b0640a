"""Population files: prism's own JSON Lines and the formats of OASIS."""
