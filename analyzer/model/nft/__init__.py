"""Tables, chains, sets and rules as nft prints them."""
