"""The dossier: one page for the reviewer who must sign a study, and the bundle that confirms it.

`evidence` proves and attacks the noise now, `facts` is what no other file of the bundle says, and
`page` makes the page of these files, by the standard library alone. `bundle` packs them; `review`,
which is packed too, makes the page again and checks what the files confirm of each other.
"""
