from turnout.frequency.choice import OracleCandidate as OracleCandidate
from turnout.planning.candidates import PlanCandidate as PlanCandidate
from turnout.planning.candidates import TradeOff as TradeOff
from turnout.planning.candidates import TradeOffCurve as TradeOffCurve
from turnout.planning.choice import OracleChoice as OracleChoice
from turnout.planning.participation import ParticipationPlan as ParticipationPlan
from turnout.planning.proposal import PlanCheck as PlanCheck
from turnout.planning.proposal import PlanProposal as PlanProposal
