"""The on-ramp: rows of a table become episodes.

It stands in `mdp`, beside the `Trajectories` that it makes and the names that it reads, and not in
`study`, because learning from logged episodes needs it too and must not load a study.

The way of a table: a *source* (`frames`, `csv_files`, `parquet_files`) hands over columns as plain
lists, part by part; `rows` turns them into numbers; `episodes` puts the rows of each user in order.
What does not fit is refused with its row, column and value. These messages show raw data: they are
for the operator whom a central study trusts with it, and belong in no log that others read.
"""
