from discreet.privacy.auditing.conformance import Conformance as Conformance
from discreet.privacy.auditing.conformance import check_mechanism as check_mechanism
from discreet.privacy.auditing.run import AuditRow as AuditRow
from discreet.privacy.auditing.run import audit as audit
