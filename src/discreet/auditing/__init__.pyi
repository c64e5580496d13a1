from discreet.auditing.conformance import Conformance as Conformance
from discreet.auditing.conformance import check_mechanism as check_mechanism
from discreet.auditing.run import AuditRow as AuditRow
from discreet.auditing.run import audit as audit
