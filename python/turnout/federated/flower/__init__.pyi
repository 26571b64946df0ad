from turnout.federated.flower.client import LocalData as LocalData
from turnout.federated.flower.client import client_app as client_app
from turnout.federated.flower.client import participation_mod as participation_mod
from turnout.federated.flower.frequency import frequency_client_app as frequency_client_app
from turnout.federated.flower.frequency import frequency_server_app as frequency_server_app
from turnout.federated.flower.records import pack as pack
from turnout.federated.flower.records import sampled_elements as sampled_elements
from turnout.federated.flower.records import unpack as unpack
from turnout.federated.flower.secure import new_aggregator as new_aggregator
from turnout.federated.flower.strategy import (
    RandomParticipationStrategy as RandomParticipationStrategy,
)
from turnout.federated.flower.strategy import server_app as server_app
