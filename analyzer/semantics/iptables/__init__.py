"""Traversal and matches of iptables rules, as ``ipt_do_table`` performs them."""
