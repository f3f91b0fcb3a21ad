"""What the options name: files, bundles and nodes, read and recognised."""
