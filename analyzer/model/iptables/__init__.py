"""Tables, chains, rules, matches and targets as iptables-save prints them."""
