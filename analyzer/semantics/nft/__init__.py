"""Traversal and expressions of nft rules, as ``nft_do_chain`` performs them."""
