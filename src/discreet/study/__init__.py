"""A study's life: a learner on real people's episodes, for weeks, in one file."""

from typing import TYPE_CHECKING

from discreet._lazy import attach as _attach

if TYPE_CHECKING:  # what the lazy table below means to type checkers and editors
    from discreet.study.check import StudyReport, check_study
    from discreet.study.design import Design, read_design
    from discreet.study.knowledge import Answer, Estimate
    from discreet.study.prospect import Prospect
    from discreet.study.study import Study, resume, start

_WHERE = {
    "Answer": "discreet.study.knowledge",
    "Design": "discreet.study.design",
    "Estimate": "discreet.study.knowledge",
    "Prospect": "discreet.study.prospect",
    "Study": "discreet.study.study",
    "StudyReport": "discreet.study.check",
    "check_study": "discreet.study.check",
    "read_design": "discreet.study.design",
    "resume": "discreet.study.study",
    "start": "discreet.study.study",
}

__all__ = [
    "Answer",
    "Design",
    "Estimate",
    "Prospect",
    "Study",
    "StudyReport",
    "check_study",
    "read_design",
    "resume",
    "start",
]

__getattr__, __dir__, _ = _attach(__name__, _WHERE)
