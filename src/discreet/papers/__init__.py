"""The five papers as printed: presets, what they deliver, and regret bounds.

Data and formulas alone, light to import: `presets` (one object per paper and version), `bounds`
(upper and lower, as callables). Learners, experiments and the command line read them.
"""
