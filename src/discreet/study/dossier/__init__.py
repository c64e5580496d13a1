"""The dossier: one page for the reviewer who must sign a study.

`evidence` makes what is proven and attacked now; `page` fills the template `dossier.html`, whose
looks are in `dossier.css` and whose words about notions of privacy are in `words.html`. Nothing is
loaded from elsewhere: the page can be printed, mailed and kept.
"""
