"""The dossier: one page for the reviewer who must sign a study.

`evidence` makes what is proven and attacked now, `words` says what is promised and to whom, `page`
puts it together with `sections` and `heat_map`. Nothing is loaded from elsewhere: the page can be
printed, mailed and kept.
"""
