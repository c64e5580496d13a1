from discreet.privacy.certificates.document import Certificate as Certificate
from discreet.privacy.certificates.document import CertificateError as CertificateError
from discreet.privacy.certificates.document import Claim as Claim
from discreet.privacy.certificates.document import certify as certify
from discreet.privacy.certificates.document import certify_claim as certify_claim
from discreet.privacy.certificates.document import claim_of as claim_of
