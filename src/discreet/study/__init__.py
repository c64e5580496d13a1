"""A study's life: a learner on real people's episodes, for weeks, in one file."""

from discreet._lazy import attach as _attach

_WHERE = {
    "Answer": "discreet.study.knowledge",
    "Design": "discreet.study.design",
    "Estimate": "discreet.study.knowledge",
    "Prospect": "discreet.study.config",
    "Study": "discreet.study.study",
    "StudyReport": "discreet.study.check",
    "check_study": "discreet.study.check",
    "read_design": "discreet.study.design",
    "resume": "discreet.study.study",
    "start": "discreet.study.study",
}

__getattr__, __dir__, __all__ = _attach(__name__, _WHERE)
