"""The only server: takes sealed reports, waits for n users, permutes, hands over, forgets."""
