from discreet import device as device
from discreet import errors as errors
from discreet import lab as lab
from discreet import learners as learners
from discreet import mdp as mdp
from discreet import privacy as privacy
from discreet import study as study
from discreet.lab.results import load as load
from discreet.learners.check import check_learner as check_learner
from discreet.learners.learn import learn as learn
from discreet.mdp.check import check_mdp as check_mdp
from discreet.mdp.environments.registry import make as make
from discreet.mdp.gymnasium import from_gymnasium as from_gymnasium
from discreet.mdp.gymnasium import to_gymnasium as to_gymnasium
from discreet.mdp.tabular import TabularMDP as TabularMDP
from discreet.offline.fit import fit as fit
from discreet.privacy.auditing.conformance import check_mechanism as check_mechanism
from discreet.privacy.guarantee import Guarantee as Guarantee
from discreet.privacy.trust import Central as Central
from discreet.privacy.trust import Local as Local
from discreet.privacy.trust import NoPrivacy as NoPrivacy
from discreet.privacy.trust import Shuffle as Shuffle
from discreet.study.check import check_study as check_study
from discreet.study.study import resume as resume
from discreet.study.study import start as start

__version__: str
