"""The dossier: one page for the reviewer who must sign a study.

`evidence` makes what is proven and attacked now; `page` fills the template `dossier.html`, whose
looks are in `dossier.css` and whose words about notions of privacy are in `words.html`. Nothing is
loaded from elsewhere: the page can be printed, mailed and kept. `bundle` adds what confirms it, and
`review`, which does so by the standard library alone; `registry` is its entry in a public registry.
"""
