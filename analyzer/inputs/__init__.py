"""Input named by options: files, bundles and nodes, read and recognised."""
