"""What the templates of all targets share: index algebra, on-demand evaluation, vector math."""
